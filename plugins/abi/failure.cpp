#include "abi/failure.h"

#include <new>

namespace ltc::abi {
namespace {

Error translate_current() {
  try {
    throw;
  } catch (const Failure& failure) {
    return failure.error();
  } catch (const std::bad_alloc&) {
    return {LTC_RESOURCE_EXHAUSTED, LTC_NONE, "out of host memory"};
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

}  // namespace ltc::abi
