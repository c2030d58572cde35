#include "conformance/report.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iomanip>

#include "conformance/facts.h"
#include "core/base/error.h"
#include "core/base/utf8.h"
#include "ltc/plugin.h"

namespace ltc::conformance {
namespace {

size_t count(const Results& results, const std::string& tier, Outcome outcome) {
  return static_cast<size_t>(std::ranges::count_if(
      results, [&](const Result& r) { return r.outcome == outcome && (tier.empty() || r.tier() == tier); }));
}

bool ran(const Results& results, const std::string& tier) {
  return std::ranges::any_of(results, [&](const Result& r) { return r.tier() == tier; });
}

std::string xml(const std::string& text) {
  std::string result;
  for (const char c : valid_utf8(text)) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      case '\n': result += "&#10;"; break;
      default: result += static_cast<unsigned char>(c) < 0x20 && c != '\t' ? '?' : c;
    }
  }
  return result;
}

std::string why(const Result& r) { return r.reason.empty() ? r.message : cat(r.reason, "\n", r.message); }

std::string abi() { return cat(LTC_ABI_MAJOR, ".", LTC_ABI_MINOR); }

std::string list(const std::vector<std::string>& texts) {
  std::string result = "[";
  for (const std::string& text : texts) result += cat(result.size() > 1 ? ", " : "", json_string(text));
  return result + "]";
}

std::string joined(const char* label, const std::vector<std::string>& texts) {
  std::string result = texts.empty() ? "" : label;
  for (const std::string& text : texts) result += " " + text;
  return result;
}

size_t all_of(const std::map<std::string, size_t>& checks) {
  size_t sum = 0;
  for (const auto& [tier, number] : checks) sum += number;
  return sum;
}

std::ofstream opened(const std::string& path) {
  std::ofstream file(path);
  if (!file) fail(Code::kNotFound, path, ": cannot be written");
  return file;
}

void closed(std::ofstream& file, const std::string& path) {
  file.close();
  if (!file) fail(Code::kResourceExhausted, path, ": could not be written whole");
}

}  // namespace

bool all_well(const Results& results) {
  return count(results, "", Outcome::kFailed) == 0 && count(results, "", Outcome::kNotRun) == 0 &&
         count(results, "", Outcome::kPassed) + count(results, "", Outcome::kExpectedFailure) > 0;
}

bool Run::complete() const {
  return std::ranges::all_of(checks, [&](const auto& tier) {
    const auto of_tier = [&](const Result& r) { return r.tier() == tier.first; };
    return static_cast<size_t>(std::ranges::count_if(results, of_tier)) == tier.second;
  });
}

Verdict verdict(const Run& run) {
  // Failures that a list expects or excuses are failures: they decide the exit code only.
  const bool good = std::ranges::all_of(run.results, [](const Result& r) {
    return r.outcome == Outcome::kPassed || r.outcome == Outcome::kUnsupported || r.outcome == Outcome::kNotApplicable;
  });
  if (!good || !all_well(run.results)) return Verdict::kDoesNotConform;
  return run.complete() ? Verdict::kConforms : Verdict::kNoStatement;
}

std::string conformance_version(const Run& run) {
  return verdict(run) == Verdict::kConforms && this_build().clean ? abi() : "0.0.0";
}

void print_result(std::ostream& out, const Result& result, bool verbose) {
  const bool failed = result.outcome == Outcome::kFailed;
  if (!failed && !verbose) return;
  out << (failed ? "FAILED" : outcome_name(result.outcome)) << "  " << result.name << "  (" << result.elapsed_ms << " ms)\n";
  std::string message = why(result);
  if (message.empty()) return;
  for (size_t at = 0; (at = message.find('\n', at)) != std::string::npos; at += 5) message.replace(at, 1, "\n    ");
  out << "    " << message << "\n";
}

void print_summary(std::ostream& out, const Run& run) {
  const auto& [subject, tiers_asked, filters, checks, results] = run;
  out << "\n"
      << subject.name << " " << subject.version << (subject.build_id.empty() ? "" : ", build ") << subject.build_id << " ("
      << subject.path << ")" << (subject.device.empty() ? "" : " on ") << subject.device << ", ABI " << abi() << "\n\n";
  out << std::left << std::setw(10) << "tier" << std::right;
  for (const Outcome outcome : kOutcomes) out << std::setw(18) << outcome_name(outcome);
  out << "\n";
  const auto row = [&](const std::string& label, const std::string& tier) {
    out << std::left << std::setw(10) << label << std::right;
    for (const Outcome outcome : kOutcomes) out << std::setw(18) << count(results, tier, outcome);
    out << "\n";
  };
  for (const std::string& tier : tiers()) {
    if (ran(results, tier)) row(tier, tier);
  }
  row("all", "");
  if (count(results, "", Outcome::kNotRun) > 0) out << "\nSTOPPED: the plugin hangs while it loads\n";
  out << "\n";
  if (!run.complete()) {
    out << "RAN " << results.size() << " of the suite's " << all_of(checks) << " checks" << joined("; tiers", tiers_asked)
        << joined("; filters", filters) << "\n";
  }
  switch (verdict(run)) {
    case Verdict::kNoStatement: out << "No failure in these. This is no statement of conformance.\n"; break;
    case Verdict::kDoesNotConform: out << "DOES NOT CONFORM\n"; break;
    case Verdict::kConforms:
      out << "CONFORMS, conformance version " << conformance_version(run)
          << (this_build().clean ? "" : ": the suite was built from changed or unknown sources") << "\n";
  }
}

void write_json(const std::string& path, const Run& run) {
  const Build build = this_build();
  const Machine machine = this_machine();
  const Verdict conforms = verdict(run);
  std::ofstream file = opened(path);
  file << "{\n  \"suite\": \"ltc-conformance\",\n  \"abi\": " << json_string(abi())
       << ",\n  \"conformance_version\": " << json_string(conformance_version(run)) << ",\n  \"conforms\": "
       << (conforms == Verdict::kNoStatement ? "null"
           : conforms == Verdict::kConforms  ? "true"
                                             : "false")
       << ",\n  \"complete\": " << (run.complete() ? "true" : "false") << ",\n  \"selection\": {\"tiers\": " << list(run.tiers)
       << ", \"filters\": " << list(run.filters) << "},\n  \"host\": {\"version\": " << json_string(build.version)
       << ", \"commit\": " << json_string(build.commit) << ", \"clean\": " << (build.clean ? "true" : "false")
       << "},\n  \"plugin\": {\"path\": " << json_string(run.subject.path) << ", \"name\": " << json_string(run.subject.name)
       << ", \"version\": " << json_string(run.subject.version) << ", \"build_id\": " << json_string(run.subject.build_id)
       << ", \"device\": " << json_string(run.subject.device)
       << "},\n  \"machine\": {\"processor\": " << json_string(machine.processor) << ", \"processors\": " << machine.processors
       << ", \"architecture\": " << json_string(machine.architecture) << ", \"os\": " << json_string(machine.os)
       << ", \"kernel\": " << json_string(machine.kernel) << "},\n  \"tiers\": {";
  const char* separator = "";
  for (const std::string& tier : tiers()) {
    if (!run.checks.contains(tier)) continue;
    file << separator << "\n    " << json_string(tier) << ": {\"checks\": " << run.checks.at(tier);
    for (const Outcome outcome : kOutcomes)
      file << ", " << json_string(outcome_name(outcome)) << ": " << count(run.results, tier, outcome);
    file << "}";
    separator = ",";
  }
  file << "\n  },\n  \"checks\": [";
  separator = "";
  for (const Result& r : run.results) {
    file << separator << "\n    {\"name\": " << json_string(r.name) << ", \"tier\": " << json_string(r.tier())
         << ", \"outcome\": " << json_string(outcome_name(r.outcome)) << ", \"elapsed_ms\": " << r.elapsed_ms
         << ", \"message\": " << json_string(r.message) << ", \"reason\": " << json_string(r.reason) << "}";
    separator = ",";
  }
  file << "\n  ]\n}\n";
  closed(file, path);
}

void write_junit(const std::string& path, const Run& run) {
  const Results& results = run.results;
  std::ofstream file = opened(path);
  file << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"ltc-conformance " << xml(run.subject.name) << "\">\n";
  for (const std::string& tier : tiers()) {
    if (!ran(results, tier)) continue;
    const auto of_tier = static_cast<size_t>(std::ranges::count_if(results, [&](const Result& r) { return r.tier() == tier; }));
    const size_t failed = count(results, tier, Outcome::kFailed), passed = count(results, tier, Outcome::kPassed);
    file << "  <testsuite name=\"" << tier << "\" tests=\"" << of_tier << "\" failures=\"" << failed << "\" skipped=\""
         << of_tier - failed - passed << "\">\n";
    for (const Result& r : results) {
      if (r.tier() != tier) continue;
      file << "    <testcase classname=\"" << tier << "\" name=\"" << xml(r.name.substr(r.name.find('.') + 1)) << "\" time=\""
           << static_cast<double>(r.elapsed_ms) / 1000 << "\"";
      if (r.outcome == Outcome::kPassed) {
        file << "/>\n";
      } else if (r.outcome == Outcome::kFailed) {
        file << "><failure message=\"" << xml(why(r)) << "\"/></testcase>\n";
      } else {
        file << "><skipped message=\"" << xml(cat(outcome_name(r.outcome), ": ", why(r))) << "\"/></testcase>\n";
      }
    }
    file << "  </testsuite>\n";
  }
  file << "</testsuites>\n";
  closed(file, path);
}

}  // namespace ltc::conformance
