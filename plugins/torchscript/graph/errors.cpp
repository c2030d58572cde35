#include "torchscript/graph/errors.h"

#include <c10/util/Exception.h>

#include <string_view>

namespace ltc::torchscript {
namespace {

// The CPU allocator, internal asserts, and gather and scatter for a bad index throw the same plain c10::Error as a bad argument;
// only the text tells them apart.
ltc_code code_of_plain_error(std::string_view message) {
  if (message.find("DefaultCPUAllocator") != message.npos) return LTC_RESOURCE_EXHAUSTED;
  if (message.find("INTERNAL ASSERT FAILED") != message.npos) return LTC_INTERNAL;
  if (message.find("is out of bounds for dimension") != message.npos) return LTC_OUT_OF_RANGE;
  return LTC_INVALID_ARGUMENT;
}

Error translate_current() {
  try {
    throw;
  } catch (const c10::OutOfMemoryError& error) {
    return {LTC_RESOURCE_EXHAUSTED, LTC_NONE, error.what_without_backtrace()};
  } catch (const c10::AcceleratorError& error) {
    return {LTC_DEVICE_LOST, LTC_NONE, error.what_without_backtrace()};
  } catch (const c10::IndexError& error) {
    return {LTC_OUT_OF_RANGE, LTC_NONE, error.what_without_backtrace()};
  } catch (const c10::NotImplementedError& error) {
    return {LTC_UNSUPPORTED, LTC_NONE, error.what_without_backtrace()};
  } catch (const c10::Error& error) {
    return {code_of_plain_error(error.what_without_backtrace()), LTC_NONE, error.what_without_backtrace()};
  } catch (...) {
    return plugin::current_error();
  }
}

}  // namespace

Error current_error() noexcept {
  try {
    return translate_current();
  } catch (...) {
    return {LTC_RESOURCE_EXHAUSTED, LTC_NONE, {}};
  }
}

}  // namespace ltc::torchscript
