// The report: text as it goes, a summary, JSON and JUnit.
#pragma once

#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "conformance/result.h"

namespace ltc::conformance {

// The plugin and device that were tested.
struct Subject {
  std::string path, name, version, build_id, device;
};

struct Run {
  Subject subject;
  std::vector<std::string> tiers, filters;  // that were asked for; empty: all
  std::map<std::string, size_t> checks;     // of each tier, how many the suite has
  Results results;

  bool complete() const;  // each check of the suite has a result
};

void print_result(std::ostream& out, const Result& result, bool verbose);
void print_summary(std::ostream& out, const Run& run);
void write_json(const std::string& path, const Run& run);   // throws where it cannot
void write_junit(const std::string& path, const Run& run);  // throws where it cannot

enum class Verdict { kConforms, kDoesNotConform, kNoStatement };  // the last: a part of the checks ran, and none of them failed
Verdict verdict(const Run& run);
// The ABI's version after a complete run that conforms, with a suite of a clean tree; else "0.0.0".
std::string conformance_version(const Run& run);

bool all_well(const Results& results);  // nothing failed or was left out, and something ran

}  // namespace ltc::conformance
