// The arguments of the two programs, and their one option.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ltc::pjrt {

struct CommandLine {
  std::vector<std::string> arguments;
  std::string filter = "*";
  bool is_good = true;

  CommandLine(int argc, char** argv, size_t argument_count) {
    for (int i = 1; i < argc; ++i) {
      const std::string_view argument = argv[i];
      if (argument == "--filter" && i + 1 < argc) {
        filter = argv[++i];
      } else {
        is_good &= !argument.starts_with("-");
        arguments.emplace_back(argument);
      }
    }
    is_good &= arguments.size() == argument_count;
  }
};

}  // namespace ltc::pjrt
