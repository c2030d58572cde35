// How a failure inside a plugin becomes an ltc_status: C++ exceptions inside, one translation at the C boundary.
#pragma once
#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include "ltc/plugin.h"

namespace ltc::abi {

// A failure as data: what an event keeps until somebody waits for it.
struct Error {
  ltc_code code = LTC_INTERNAL;
  uint32_t node = LTC_NONE;
  std::string message;
};

// Thrown where the code, or the node to blame, is known.
class Failure : public std::exception {
 public:
  explicit Failure(Error error) : error_(std::move(error)) {}
  Failure(ltc_code code, std::string message, uint32_t node = LTC_NONE) : error_{code, node, std::move(message)} {}
  const Error& error() const noexcept { return error_; }
  const char* what() const noexcept override { return error_.message.c_str(); }

 private:
  Error error_;
};

// The exception that is being handled; only inside a catch block. Never throws: without memory for the text it keeps the code.
Error current_error() noexcept;

// One new status, owned by the caller.
ltc_status* make_status(const ltc_host_api* host, const Error& error) noexcept;

// Runs the body of a C function: nothing escapes, NULL is success. `translate`: for a library with exceptions of its own.
template <typename Body>
ltc_status* guarded(const ltc_host_api* host, Body&& body, Error (*translate)() noexcept = current_error) noexcept {
  try {
    body();
    return nullptr;
  } catch (...) {
    return make_status(host, translate());
  }
}

}  // namespace ltc::abi
