// ltc-run-stablehlo: a folder of modules on a PJRT library.
#include <cstdio>
#include <exception>

#include "pjrt/export/command_line.h"
#include "pjrt/export/folder.h"

int main(int argc, char** argv) {
  const ltc::pjrt::CommandLine line(argc, argv, 2);
  if (!line.is_good) {
    std::fputs("usage: ltc-run-stablehlo LIBRARY.so FOLDER [--filter PATTERN]\n", stderr);
    return 2;
  }
  size_t passed = 0, failed = 0;
  try {
    ltc::pjrt::run_folder(line.arguments[0], line.arguments[1], line.filter, [&](const auto& name, const auto& wrong) {
      ++(wrong.empty() ? passed : failed);
      std::printf(wrong.empty() ? "passed %s%s\n" : "FAILED %s: %s\n", name.c_str(), wrong.c_str());
      std::fflush(stdout);
    });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ltc-run-stablehlo: %s\n", error.what());
    return 2;
  }
  std::printf("%zu passed, %zu failed\n", passed, failed);
  return failed ? 1 : passed ? 0 : 2;  // no module is no success
}
