// ltc-export-stablehlo: the op tier as a folder of modules.
#include <cstdio>
#include <exception>

#include "pjrt/export/command_line.h"
#include "pjrt/export/folder.h"

int main(int argc, char** argv) {
  const ltc::pjrt::CommandLine line(argc, argv, 1);
  if (!line.is_good) {
    std::fputs("usage: ltc-export-stablehlo OUT_FOLDER [--filter PATTERN]\n", stderr);
    return 2;
  }
  try {
    const ltc::pjrt::Index index = ltc::pjrt::export_folder(line.arguments[0], line.filter);
    for (const auto& entry : index.not_exported) std::printf("not exported %s: %s\n", entry.name.c_str(), entry.reason.c_str());
    std::printf("%zu modules, %zu not exported\n", index.modules.size(), index.not_exported.size());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ltc-export-stablehlo: %s\n", error.what());
    return 2;
  }
}
