// Common steps of plugins where the host calls them: agree on a version, refuse unknown extensions and options.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "abi/failure.h"

namespace ltc::abi {

// A literal: its bytes live as long as the library.
template <size_t N>
constexpr ltc_string literal(const char (&text)[N]) {
  return {text, N - 1};
}
inline ltc_string borrowed(const std::string& text) { return {text.c_str(), text.size()}; }
inline std::string_view view(const ltc_string& text) { return {text.data, text.size}; }

// Flags and direction of a transfer are known, its host memory is there.
void check_transfer(const ltc_transfer_args& args);
// `role`: "source" or "target".
void check_range(const char* role, uint64_t offset, uint64_t size, uint64_t buffer_bytes);

// `what`: "inputs", of a run.
void check_count(const char* what, size_t given, size_t compiled);

}  // namespace ltc::abi
