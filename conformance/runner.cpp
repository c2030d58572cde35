#include "conformance/runner.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <iostream>
#include <mutex>
#include <thread>

#include "core/base/error.h"

namespace ltc::conformance {
namespace {

constexpr int kSomeFailed = 1;    // of a child that came to its end
constexpr int kStressTimes = 10;  // as much time has a check that does the same many thousand times
using Clock = std::chrono::steady_clock;

// ---- the child: a line per event, fields separated by tabs. "start NAME", "end NAME OUTCOME MS
// MESSAGE", then a key and a value per property.

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\' || c == '\n' || c == '\t') result += '\\';
    result += c == '\n' ? 'n' : c == '\t' ? 't' : c;
  }
  return result;
}

std::string unescaped(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      result += text[i];
    } else {
      ++i;
      result += text[i] == 'n' ? '\n' : text[i] == 't' ? '\t' : text[i];
    }
  }
  return result;
}

void send(const std::string& line) {
  const std::string text = line + "\n";
  for (size_t at = 0; at < text.size();) {
    const ssize_t written = ::write(kResultDescriptor, text.data() + at, text.size() - at);
    if (written <= 0) ::_exit(3);  // the parent is gone
    at += static_cast<size_t>(written);
  }
}

std::string name_of(const ::testing::TestInfo& info) { return cat(info.test_suite_name(), ".", info.name()); }

Outcome outcome_of(const ::testing::TestResult& result, const std::string& message) {
  if (result.Failed()) return Outcome::kFailed;
  if (!result.Skipped()) return Outcome::kPassed;
  return message.starts_with("unsupported") ? Outcome::kUnsupported : Outcome::kNotApplicable;
}

class Reporter : public ::testing::EmptyTestEventListener {
  void OnTestStart(const ::testing::TestInfo& info) override { send("start\t" + name_of(info)); }

  void OnTestEnd(const ::testing::TestInfo& info) override {
    const ::testing::TestResult& result = *info.result();
    std::string message;
    for (int i = 0; i < result.total_part_count(); ++i) {
      const ::testing::TestPartResult& part = result.GetTestPartResult(i);
      if (part.passed() || (result.Failed() && part.skipped())) continue;
      message += (message.empty() ? "" : "\n") + std::string(part.message());
    }
    while (message.ends_with('\n')) message.pop_back();
    const auto outcome = static_cast<int>(outcome_of(result, message));
    std::string line = cat("end\t", name_of(info), "\t", outcome, "\t", result.elapsed_time(), "\t", escaped(message));
    for (int i = 0; i < result.test_property_count(); ++i) {
      const ::testing::TestProperty& property = result.GetTestProperty(i);
      line += cat("\t", escaped(property.key()), "\t", escaped(property.value()));
    }
    send(line);
  }
};

// ---- the parent

struct Child {
  pid_t pid = -1;
  int results = -1;
};

Child start_child(const Options& options, const std::deque<std::string>& names) {
  int input[2], output[2];
  // Closed on exec: a child that held another's end of a pipe would keep the parent from seeing that one end.
  if (::pipe2(input, O_CLOEXEC) != 0 || ::pipe2(output, O_CLOEXEC) != 0)
    fail(Code::kResourceExhausted, "no pipe: ", std::strerror(errno));
  const pid_t pid = ::fork();
  if (pid < 0) fail(Code::kResourceExhausted, "no child process: ", std::strerror(errno));
  if (pid == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a plugin that hangs would live on
    ::signal(SIGPIPE, SIG_DFL);
    ::dup2(input[0], STDIN_FILENO);
    ::dup2(output[1], kResultDescriptor);
    ::fcntl(kResultDescriptor, F_SETFD, 0);
    ::execl("/proc/self/exe", "ltc-conformance", "--child", "--backend", options.backend.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(input[0]);
  ::close(output[1]);
  std::string text;
  for (const std::string& name : names) text += name + "\n";
  // A child reads all names before it does anything else, so this never blocks for long.
  for (size_t at = 0; at < text.size();) {
    const ssize_t written = ::write(input[1], text.data() + at, text.size() - at);
    if (written <= 0) break;
    at += static_cast<size_t>(written);
  }
  ::close(input[1]);
  return {pid, output[0]};
}

// Lines of the pipe until a time; false at its end or when the time is over.
class LineReader {
 public:
  explicit LineReader(int descriptor) : descriptor_(descriptor) {}
  bool timed_out() const { return timed_out_; }

  bool next(std::string& line, Clock::time_point until) {
    size_t end;
    while ((end = buffer_.find('\n')) == std::string::npos) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
      pollfd poll{descriptor_, POLLIN, 0};
      const int ready = left > 0 ? ::poll(&poll, 1, static_cast<int>(left)) : 0;
      timed_out_ = ready == 0;
      if (ready <= 0) return false;
      char chunk[4096];
      const ssize_t size = ::read(descriptor_, chunk, sizeof chunk);
      if (size <= 0) return false;
      buffer_.append(chunk, static_cast<size_t>(size));
    }
    line = buffer_.substr(0, end);
    buffer_.erase(0, end + 1);
    return true;
  }

 private:
  int descriptor_;
  bool timed_out_ = false;
  std::string buffer_;
};

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  for (size_t at = 0;;) {
    const size_t tab = line.find('\t', at);
    fields.push_back(line.substr(at, tab - at));
    if (tab == std::string::npos) return fields;
    at = tab + 1;
  }
}

std::string end_of(int status) {
  if (WIFSIGNALED(status))
    return cat("the plugin crashed the process: signal ", WTERMSIG(status), " (", ::strsignal(WTERMSIG(status)), ")");
  return cat("the plugin ended the process with code ", WEXITSTATUS(status));
}

// Runs names from the front until the child ends; leaves those that are still to do.
void run_child(const Options& options, std::deque<std::string>& names, const Starts& starts, const Report& report) {
  const Child child = start_child(options, names);
  LineReader lines(child.results);
  std::string line, running;
  auto started = Clock::now();
  const int limit_s = options.timeout_s * (tier_of(names.front()) == "stress" ? kStressTimes : 1);
  while (lines.next(line, started + std::chrono::seconds(limit_s))) {
    const auto fields = fields_of(line);
    started = Clock::now();
    if (fields[0] == "start") {
      running = fields[1];
      starts(running);
    } else if (fields.size() >= 5) {
      Result result{fields[1], static_cast<Outcome>(std::stoi(fields[2])), std::stoll(fields[3]), unescaped(fields[4]), ""};
      for (size_t i = 5; i + 1 < fields.size(); i += 2) result.properties[unescaped(fields[i])] = unescaped(fields[i + 1]);
      report(std::move(result));
      std::erase(names, fields[1]);
      running.clear();
    }
  }
  if (lines.timed_out()) ::kill(-child.pid, SIGKILL);
  int status = 0;
  ::waitpid(child.pid, &status, 0);
  ::close(child.results);
  if (names.empty() && !lines.timed_out() && WIFEXITED(status) && WEXITSTATUS(status) <= kSomeFailed) return;
  // Without a running check it is the first that is blamed: the child did not get so far, and must not be started for ever.
  const bool at_end = names.empty();
  if (running.empty()) running = at_end ? "Loader.the_process_ends_well" : names.front();
  const auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - started).count();
  const std::string what = lines.timed_out() ? cat("hangs: no end within ", limit_s, " s") : end_of(status);
  Result failed{running, Outcome::kFailed, elapsed, at_end ? cat("after the last check, ", what) : what, ""};
  failed.hung = lines.timed_out() && !at_end;
  report(std::move(failed));
  std::erase(names, running);
}

void leave_out(std::deque<std::string>& names, const Report& report) {
  for (const std::string& name : names) report({name, Outcome::kNotRun, 0, "the plugin hangs while it loads", ""});
  names.clear();
}

}  // namespace

std::vector<std::string> all_checks() {
  std::vector<std::string> names;
  const ::testing::UnitTest& unit = *::testing::UnitTest::GetInstance();
  for (const std::string& tier : tiers()) {
    for (int s = 0; s < unit.total_test_suite_count(); ++s) {
      const ::testing::TestSuite& suite = *unit.GetTestSuite(s);
      if (tier_of(suite.name()) != tier) continue;
      for (int t = 0; t < suite.total_test_count(); ++t) names.push_back(name_of(*suite.GetTestInfo(t)));
    }
  }
  return names;
}

std::vector<std::string> chosen_checks(const Options& options) {
  std::vector<std::string> names = all_checks();
  std::erase_if(names, [&](const std::string& name) {
    const auto match = [&](const std::string& pattern) { return matches(pattern, name); };
    const bool tier = options.tiers.empty() || std::ranges::find(options.tiers, tier_of(name)) != options.tiers.end();
    return !tier || !(options.filters.empty() || std::ranges::any_of(options.filters, match));
  });
  return names;
}

void run_checks(const Options& options, const std::vector<std::string>& names, const Starts& starts, const Report& report) {
  ::signal(SIGPIPE, SIG_IGN);
  std::mutex reporting;
  std::atomic<bool> stuck{false};
  const auto report_alone = [&](Result result) {
    std::lock_guard lock(reporting);
    if (result.hung && result.tier() == tiers().front()) stuck = true;
    report(std::move(result));
  };
  for (const std::string& tier : tiers()) {
    std::vector<std::deque<std::string>> hands(options.jobs);
    size_t dealt = 0;
    for (const std::string& name : names) {
      if (tier_of(name) == tier) hands[dealt++ % hands.size()].push_back(name);
    }
    std::vector<std::jthread> jobs;
    for (std::deque<std::string>& hand : hands) {
      jobs.emplace_back([&] {
        while (!hand.empty()) stuck ? leave_out(hand, report_alone) : run_child(options, hand, starts, report_alone);
      });
    }
  }
}

int run_as_child() {
  std::string filter, name;
  while (std::getline(std::cin, name)) filter += (filter.empty() ? "" : ":") + name;
  ::testing::GTEST_FLAG(filter) = filter;
  ::testing::GTEST_FLAG(catch_exceptions) = true;
  ::testing::TestEventListeners& listeners = ::testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new Reporter);
  const int failed = RUN_ALL_TESTS();
  return failed ? kSomeFailed : 0;
}

}  // namespace ltc::conformance
