// ltc-conformance: the checks of the C ABI that vendors run on their own library.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <string>
#include <unordered_map>
#include <vector>

#include "conformance/expected.h"
#include "conformance/kit/plugin_under_test.h"
#include "conformance/kit/process_end.h"
#include "conformance/must_pass.h"
#include "conformance/ops/register.h"
#include "conformance/options.h"
#include "conformance/progress.h"
#include "conformance/report.h"
#include "conformance/runner.h"
#include "conformance/waivers.h"
#include "core/base/error.h"

namespace ltc::conformance {
namespace {

constexpr int kWrongUse = 2;
constexpr const char* kSubjectCheck = "Loader.describe_says_what_the_plugin_is";

// The plugin's description of itself, asked in a child too: it may crash at the first call.
Subject subject_of(const Options& options, const Results& results) {
  Subject subject{options.backend, "plugin", "", "", ""};
  if (std::ranges::find(results, Outcome::kNotRun, &Result::outcome) != results.end()) return subject;  // it would hang again
  const Starts starts = [](const std::string&) {};
  run_checks(options, {kSubjectCheck}, starts, [&](const Result& result) {
    const auto property = [&](const char* key) {
      const auto it = result.properties.find(key);
      return it == result.properties.end() ? "" : it->second;
    };
    if (result.properties.contains("plugin_name")) subject.name = property("plugin_name");
    subject.version = property("plugin_version");
    subject.build_id = property("build_id");
    subject.device = property("device");
  });
  return subject;
}

// A check that ends well may yet bring the process down behind it: the last word counts.
void keep(Results& results, Result result) {
  const auto before = std::ranges::find(results, result.name, &Result::name);
  if (before == results.end()) {
    results.push_back(std::move(result));
  } else if (result.outcome == Outcome::kFailed) {
    *before = std::move(result);
  }
}

// Jobs report as they go.
void sort_like(const std::vector<std::string>& names, Results& results) {
  std::unordered_map<std::string, size_t> position;
  for (const std::string& name : names) position.emplace(name, position.size());
  const auto of = [&](const Result& result) {
    const auto it = position.find(result.name);
    return it == position.end() ? names.size() : it->second;
  };
  std::ranges::stable_sort(results, {}, of);
}

// The lists that judge each outcome.
struct Judges {
  ExpectedList expected;
  MustPass must_pass = MustPass::built_in();
  Waivers waivers;
  MustPass learnt = must_pass;
  Day today = Waivers::today();

  explicit Judges(const Options& options) {
    if (!options.expected.empty()) expected = ExpectedList::read(options.expected, all_checks());
    if (!options.waivers.empty()) waivers = Waivers::read(options.waivers, all_checks());
  }
  void judge(Result& result) {
    const Outcome ran = result.outcome;
    learnt.learn(result);
    expected.judge(result);
    must_pass.judge(result);
    waivers.judge(result, ran, today);
  }
};

void write_must_pass(const std::string& path, const MustPass& list) {
  std::ofstream file(path);
  file << list.text(all_checks());
  file.close();
  if (!file) fail(Code::kNotFound, path, ": cannot be written");
}

int run(Options options) {
  options.backend = find_backend(options.backend);
  const std::vector<std::string> names = chosen_checks(options);
  if (names.empty()) fail(Code::kInvalidArgument, "no check has a name like that; --list prints them");
  Judges judges(options);
  // A run that does not end must not leave an older one's reports.
  for (const std::string& path : {options.json, options.junit}) {
    if (!path.empty() && !std::ofstream(path)) fail(Code::kNotFound, path, ": cannot be written");
  }
  Run done{{}, options.tiers, options.filters, {}, {}};
  for (const std::string& name : all_checks()) ++done.checks[tier_of(name)];
  Results& results = done.results;
  {
    Progress progress(names.size());
    const Starts starts = [&](const std::string& name) { progress.starts(name); };
    run_checks(options, names, starts, [&](Result result) {
      judges.judge(result);
      progress.ends([&] { print_result(std::cout, result, options.verbose); });
      keep(results, std::move(result));
    });
  }
  sort_like(names, results);
  done.subject = subject_of(options, results);
  print_summary(std::cout, done);
  if (!options.json.empty()) write_json(options.json, done);
  if (!options.junit.empty()) write_junit(options.junit, done);
  if (!options.must_pass.empty()) write_must_pass(options.must_pass, judges.learnt);
  return all_well(results) ? 0 : 1;
}

int run_main(int argc, char** argv) {
  int own_argc = 1;
  ::testing::InitGoogleTest(&own_argc, argv);
  const Options options = parse_options(argc, argv);
  if (options.help) {
    std::cout << kUsage;
    return 0;
  }
  if (!options.backend.empty()) set_backend(options.backend);
  if (!options.end.empty()) return end_process(options.end);
  register_ops();
  if (options.child) return run_as_child();
  if (!options.list) return run(options);
  for (const std::string& name : chosen_checks(options)) std::cout << name << "\n";
  return 0;
}

}  // namespace
}  // namespace ltc::conformance

int main(int argc, char** argv) {
  try {
    return ltc::conformance::run_main(argc, argv);
  } catch (const std::exception& e) {
    std::cerr << "ltc-conformance: " << e.what() << "\n";
    return ltc::conformance::kWrongUse;
  }
}
