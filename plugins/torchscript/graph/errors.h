// Failures of this plugin: those of the boundary, and libtorch's.
#pragma once
#include <utility>

#include "abi/boundary.h"

namespace ltc::torchscript {

using abi::check_count;
using abi::Error;
using abi::Failure;
using abi::make_status;

// As abi::current_error, and it knows the exceptions of c10.
Error current_error() noexcept;

// Runs the body of a C function: nothing escapes, NULL is success.
template <typename Body>
ltc_status* guarded(const ltc_host_api* host, Body&& body) noexcept {
  return abi::guarded(host, std::forward<Body>(body), current_error);
}

}  // namespace ltc::torchscript
