// PyTorch's own ops. There are thousands, so they are listed once, when the package is imported.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <string>
#include <vector>

namespace ltc {

const std::vector<c10::OperatorHandle>& own_ops();

// All ops of that name, whatever their overload is. Those of other libraries are looked up each time, since they may be added.
std::vector<c10::OperatorHandle> overloads_of(const std::string& base);

}  // namespace ltc
