// The frame of a command-line program: help, errors and exit codes.
#pragma once

#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/host/library.h"
#include "core/host/search.h"

namespace ltc::deploy {

inline constexpr int kNo = 1, kWrongUse = 2;  // exit codes

class WrongUse : public std::runtime_error {
  using runtime_error::runtime_error;
};

// The plugins' folders of a program in the folder `bin` beside theirs.
inline std::vector<std::string> plugin_folders() {
  return host::plugin_folders(host::own_folder() + "/../plugins", host::running_elevated());
}

// Prints the usage where it is asked for, else returns what `work` returns. An error is printed; with WrongUse the usage follows.
template <typename Work>
int run_tool(const std::vector<std::string>& words, const char* usage, const Work& work) {
  try {
    for (const std::string& word : words) {
      if (word != "--help" && word != "-h") continue;
      std::cout << usage;
      return 0;
    }
    return work(words);
  } catch (const WrongUse& error) {
    std::cerr << "ltc: " << error.what() << "\n" << usage;
    return kWrongUse;
  } catch (const std::exception& error) {
    std::cout.flush();
    std::cerr << "ltc: " << error.what() << "\n";
    return kNo;
  }
}

}  // namespace ltc::deploy
