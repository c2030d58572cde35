// The report: text as it goes, a summary, JSON and JUnit.
#pragma once

#include <ostream>
#include <string>

#include "conformance/result.h"

namespace ltc::conformance {

// The plugin and device that were tested.
struct Subject {
  std::string path, name, version, build_id, device;
};

void print_result(std::ostream& out, const Result& result, bool verbose);
void print_summary(std::ostream& out, const Subject& subject, const Results& results);
void write_json(const std::string& path, const Subject& subject, const Results& results);   // throws where it cannot
void write_junit(const std::string& path, const Subject& subject, const Results& results);  // throws where it cannot

bool all_well(const Results& results);  // nothing failed or was left out, and something ran

}  // namespace ltc::conformance
