#include "errors.h"

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include <new>
#include <string_view>

namespace ltc::torchscript {
namespace {

constexpr uint32_t kMustUnderstand = 1u << 31;

// The CPU allocator and internal asserts throw the same plain c10::Error as a bad argument; only the text tells them apart.
ltc_code code_of_plain_error(std::string_view message) {
  if (message.find("DefaultCPUAllocator") != message.npos) return LTC_RESOURCE_EXHAUSTED;
  if (message.find("INTERNAL ASSERT FAILED") != message.npos) return LTC_INTERNAL;
  return LTC_INVALID_ARGUMENT;
}

Error translate_current() {
  try {
    throw;
  } catch (const Failure& failure) {
    return failure.error();
  } catch (const c10::OutOfMemoryError& error) {
    return {LTC_RESOURCE_EXHAUSTED, LTC_NONE, error.what_without_backtrace()};
  } catch (const c10::IndexError& error) {
    return {LTC_OUT_OF_RANGE, LTC_NONE, error.what_without_backtrace()};
  } catch (const c10::NotImplementedError& error) {
    return {LTC_UNSUPPORTED, LTC_NONE, error.what_without_backtrace()};
  } catch (const c10::Error& error) {
    return {code_of_plain_error(error.what_without_backtrace()), LTC_NONE, error.what_without_backtrace()};
  } catch (const std::bad_alloc&) {
    return {LTC_RESOURCE_EXHAUSTED, LTC_NONE, "out of memory"};
  } catch (const std::exception& error) {
    return {LTC_INTERNAL, LTC_NONE, error.what()};
  } catch (...) {
    return {LTC_INTERNAL, LTC_NONE, "unknown exception"};
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

ltc_status* make_status(const ltc_host_api* host, const Error& error) noexcept {
  return host->status_create(host->host, error.code, error.node, error.message.data(), error.message.size());
}

void check_extensions(const ltc_extension* first) {
  for (auto* extension = first; extension; extension = extension->next) {
    if (extension->kind & kMustUnderstand) {
      throw Failure(LTC_UNSUPPORTED, c10::str("[torchscript] unknown extension of kind ", extension->kind));
    }
  }
}

}  // namespace ltc::torchscript
