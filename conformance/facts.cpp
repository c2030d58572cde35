#include "conformance/facts.h"

#include <sys/utsname.h>

#include <fstream>
#include <thread>

#include "conformance_build.h"

namespace ltc::conformance {
namespace {

// The rest of the first line that begins with the key, without separators and quotes around it; empty if there is none.
std::string value_in(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const size_t begin = line.find_first_not_of(" \t:=\"", key.size());
    if (begin == std::string::npos) return "";
    return line.substr(begin, line.find_last_not_of(" \t\"") + 1 - begin);
  }
  return "";
}

}  // namespace

Build this_build() { return {LTC_BUILD_VERSION, LTC_BUILD_COMMIT, LTC_BUILD_CLEAN}; }

Machine this_machine() {
  utsname names{};
  ::uname(&names);
  Machine machine{value_in("/proc/cpuinfo", "model name"), names.machine, value_in("/etc/os-release", "PRETTY_NAME="),
                  std::string(names.sysname) + " " + names.release, std::thread::hardware_concurrency()};
  if (machine.processor.empty()) machine.processor = machine.architecture;
  if (machine.os.empty()) machine.os = names.sysname;
  return machine;
}

}  // namespace ltc::conformance
