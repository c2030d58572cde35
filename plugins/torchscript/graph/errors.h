// Failures of this plugin: those of the boundary, and libtorch's.
#pragma once
#include "ltc/plugin.hpp"

namespace ltc::torchscript {

using plugin::check_counts;
using plugin::Error;
using plugin::Failure;

// As plugin::current_error, and it knows the exceptions of c10.
Error current_error() noexcept;

// As that of ltc/plugin.hpp, with these exceptions.
template <auto function>
inline constexpr auto slot = plugin::slot<function, current_error>;

}  // namespace ltc::torchscript
