// The message of the error that `work` throws; empty where it throws none.
#pragma once

#include <string>

#include "core/base/error.h"

namespace ltc::serve::testing {

std::string message_of(const auto& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace ltc::serve::testing
