#include "conformance/options.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "conformance/result.h"
#include "core/base/error.h"
#include "core/host/library.h"
#include "core/host/search.h"

namespace ltc::conformance {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    if (comma > at) parts.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return parts;
}

int count_of(const std::string& what, const std::string& option, const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value <= 0) {
    fail(Code::kInvalidArgument, option, " wants a number of ", what, ", not '", text, "'");
  }
  return value;
}

void check_tiers(const std::vector<std::string>& names) {
  std::string known;
  for (const std::string& tier : tiers()) known += " " + tier;
  for (const std::string& name : names) {
    if (std::ranges::find(tiers(), name) == tiers().end())
      fail(Code::kInvalidArgument, "no tier '", name, "'; there are:", known);
  }
}

std::string find_library(const std::string& backend) {
  if (backend.find('/') != backend.npos || backend.ends_with(".so")) {
    if (!fs::exists(backend)) fail(Code::kNotFound, backend, ": not there");
    if (!fs::is_regular_file(backend)) fail(Code::kNotFound, backend, ": no regular file, so no plugin's library");
    return fs::absolute(backend).string();
  }
  // This program lies in the package's folder `bin`, the plugins in its folder `plugins`.
  const std::string own = (fs::path(host::own_folder()).parent_path() / "plugins").string();
  std::string tried;
  for (const std::string& folder : host::plugin_folders(own, host::running_elevated())) {
    const fs::path path = fs::path(folder) / cat("libltc_", backend, ".so");
    if (fs::exists(path)) return fs::absolute(path).string();
    tried += " " + path.string();
  }
  fail(Code::kNotFound, "no plugin '", backend, "'; tried", tried);
}

}  // namespace

const char* const kUsage = R"(usage: ltc-conformance --backend PLUGIN [OPTIONS]

Checks a plugin's library against sdk/include/ltc/plugin.h. Each check runs in a child process, so that a plugin that crashes or hangs
fails one check and not the report.

  --backend PLUGIN   a library's path, or a name, with options as in LTC_BACKEND: mine:speed=2
  --tier A,B         only these tiers: loader, abi, memory, execute, cache, async, errors, threads,
                     stress, ops, programs
  --filter PATTERN   only checks whose name it matches, '*' for any characters; may be given several times
  --expected FILE    the checks that are known to fail or to be unsupported, with reasons
  --waivers FILE     failures that are excused until a date, with reasons
  --json FILE        write a report for programs
  --junit FILE       write a report as JUnit XML
  --timeout SECONDS  a check that takes longer has failed (60); after one of the tier loader no more are run
  --jobs N           so many child processes side by side (1)
  --must-pass FILE   write the must-pass list, with the capabilities that this plugin lacks added to the needs of the checks
  --list             print the names of the checks and run none
  --verbose          a line per check

After 2 s a terminal shows the running check, on the standard error.

Exit code: 0 all is as it should be, 1 a check failed or did not do as the list says, 2 wrong use.
)";

Options parse_options(int argc, char** argv) {
  Options options;
  const std::vector<std::string> args(argv + 1, argv + argc);
  for (size_t i = 0; i < args.size(); ++i) {
    const auto value = [&] {
      if (i + 1 == args.size()) fail(Code::kInvalidArgument, args[i], " wants a value");
      return args[++i];
    };
    if (args[i] == "--backend")
      options.backend = value();
    else if (args[i] == "--tier")
      options.tiers = split(value());
    else if (args[i] == "--filter")
      options.filters.push_back(value());
    else if (args[i] == "--expected")
      options.expected = value();
    else if (args[i] == "--waivers")
      options.waivers = value();
    else if (args[i] == "--must-pass")
      options.must_pass = value();
    else if (args[i] == "--end")
      options.end = value();
    else if (args[i] == "--json")
      options.json = value();
    else if (args[i] == "--junit")
      options.junit = value();
    else if (args[i] == "--timeout")
      options.timeout_s = count_of("seconds", "--timeout", value());
    else if (args[i] == "--jobs")
      options.jobs = count_of("processes", "--jobs", value());
    else if (args[i] == "--list")
      options.list = true;
    else if (args[i] == "--verbose")
      options.verbose = true;
    else if (args[i] == "--help" || args[i] == "-h")
      options.help = true;
    else if (args[i] == "--child")
      options.child = true;
    else
      fail(Code::kInvalidArgument, "no option '", args[i], "'; --help lists them");
  }
  check_tiers(options.tiers);
  if (options.backend.empty() && !options.list && !options.help)
    fail(Code::kInvalidArgument, "--backend is missing: which plugin?");
  return options;
}

std::string find_backend(const std::string& text) {
  const host::BackendEntry entry = host::parse_entry(text);
  std::string options;
  for (const auto& [name, value] : entry.options) options += cat(options.empty() ? ":" : ",", name, "=", value);
  return find_library(entry.plugin) + options;
}

}  // namespace ltc::conformance
