// How a failure inside the plugin becomes an ltc_status: C++ exceptions inside, one translation at the C boundary.
#pragma once
#include <CL/cl.h>

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "ltc/plugin.h"

namespace ltc::opencl {

class Failure : public std::exception {
 public:
  Failure(ltc_code code, std::string message, uint32_t node = LTC_NONE) : code(code), node(node), message(std::move(message)) {}
  const char* what() const noexcept override { return message.c_str(); }

  ltc_code code;
  uint32_t node;
  std::string message;
};

// "CL_OUT_OF_RESOURCES".
std::string error_name(cl_int error);
ltc_code code_of(cl_int error);

// Throws unless the call succeeded. `what`: the function that was called.
inline void check(cl_int error, const char* what) {
  if (error == CL_SUCCESS) return;
  throw Failure(code_of(error), std::string(what) + " answered " + error_name(error));
}

inline ltc_status* make_status(const ltc_host_api* host, ltc_code code, uint32_t node, std::string_view message) noexcept {
  return host->status_create(host->host, code, node, message.data(), message.size());
}

// Runs the body of a C function: nothing escapes, NULL is success.
template <typename Body>
ltc_status* guarded(const ltc_host_api* host, Body&& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (const Failure& failure) {
    return make_status(host, failure.code, failure.node, failure.message);
  } catch (const std::bad_alloc&) {
    return make_status(host, LTC_RESOURCE_EXHAUSTED, LTC_NONE, "out of host memory");
  } catch (const std::exception& error) {
    return make_status(host, LTC_INTERNAL, LTC_NONE, error.what());
  } catch (...) {
    return make_status(host, LTC_INTERNAL, LTC_NONE, "unknown exception");
  }
}

// Refuses an extension that must be understood and is not: this plugin knows none.
void check_extensions(const ltc_extension* first);

}  // namespace ltc::opencl
