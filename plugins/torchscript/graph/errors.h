// Failures of this plugin: those of the boundary, and libtorch's.
#pragma once
#include <utility>

#include "ltc/plugin.hpp"

namespace ltc::torchscript {

using plugin::check_count;
using plugin::Error;
using plugin::Failure;
using plugin::make_status;

// As plugin::current_error, and it knows the exceptions of c10.
Error current_error() noexcept;

// As those of ltc/plugin.hpp, with these exceptions.
template <typename Body>
ltc_status* guarded(const ltc_host_api* host, Body&& body) noexcept {
  return plugin::guarded(host, std::forward<Body>(body), current_error);
}

template <auto function>
inline constexpr auto slot = plugin::slot<function, current_error>;

}  // namespace ltc::torchscript
