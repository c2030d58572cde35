// Helper for plugins in C++20, header only and optional: errors as exceptions, slots made from functions that throw, a queue for
// devices whose library is synchronous, readers of graphs, a table of ops. It uses the standard library and the C headers beside
// it.
//
// A plugin defines the objects behind the handles, such as struct ltc_device. Each has a member `host`, a const ltc_host_api*, or
// a pointer `plugin` or `device` to an object that has it.
#pragma once
#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <iterator>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "ltc/entry.h"
#include "ltc/plugin.h"

namespace ltc::plugin {

// ---- strings ------------------------------------------------------------------------------------

// A literal: its bytes live as long as the library.
template <size_t N>
constexpr ltc_string literal(const char (&text)[N]) {
  return {text, N - 1};
}
inline ltc_string borrowed(const std::string& text) { return {text.c_str(), text.size()}; }
inline std::string_view view(const ltc_string& text) { return {text.data, text.size}; }

// ---- errors -------------------------------------------------------------------------------------

// A failure as data: what an event keeps until somebody waits for it.
struct Error {
  ltc_code code = LTC_INTERNAL;
  uint32_t node = LTC_NONE;
  std::string message;
  // By output of a run: 1 where it is good all the same, for the slot event_good_outputs. Empty: none is.
  std::vector<uint8_t> good_outputs = {};

  void tell_good_outputs(size_t output_count, uint8_t* good) const {
    std::copy_n(good_outputs.begin(), std::min(output_count, good_outputs.size()), good);
  }
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

// The exception that is being handled; only inside a catch block. Without memory for the text it keeps the code.
inline Error current_error() noexcept {
  try {
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
  } catch (...) {
    return {LTC_RESOURCE_EXHAUSTED, LTC_NONE, {}};
  }
}
using Translate = Error (*)() noexcept;

// One new status, owned by the caller.
inline ltc_status* make_status(const ltc_host_api* host, const Error& error) noexcept {
  return host->status_create(host->host, error.code, error.node, error.message.data(), error.message.size());
}

// Runs the body of a C function: nothing escapes, NULL is success. `translate`: for a library with exceptions of its own.
template <typename Body>
ltc_status* guarded(const ltc_host_api* host, Body&& body, Translate translate = current_error) noexcept {
  try {
    body();
    return nullptr;
  } catch (...) {
    return make_status(host, translate());
  }
}

inline void log(const ltc_host_api* host, int32_t level, const std::string& message) noexcept {
  host->log(host->host, level, message.data(), message.size());
}

// ---- slots --------------------------------------------------------------------------------------

template <typename Object>
const ltc_host_api* host_of(const Object& object) {
  if constexpr (requires { object.host; }) {
    return object.host;
  } else if constexpr (requires { object.plugin; }) {
    return host_of(*object.plugin);
  } else {
    return host_of(*object.device);
  }
}

namespace slots {

// A reference is a pointer in C.
template <typename T>
using InC = std::conditional_t<std::is_reference_v<T>, std::remove_reference_t<T>*, T>;
template <typename T>
T from_c(InC<T> value) {
  if constexpr (std::is_reference_v<T>) {
    return static_cast<T>(*value);
  } else {
    return value;
  }
}

// The parameters of a function, or of a method behind its object.
template <typename... T>
void (*signature(void (*)(T...)))(T...);
template <typename Object, typename... T>
void (*signature(void (Object::*)(T...)))(Object&, T...);
template <typename Object, typename... T>
void (*signature(void (Object::*)(T...) const))(const Object&, T...);

template <auto function, Translate translate, typename Signature>
struct Thunk;
template <auto function, Translate translate, typename Object, typename... T>
struct Thunk<function, translate, void(Object, T...)> {
  static ltc_status* LTC_CALL call(InC<Object> object, InC<T>... args) noexcept {
    return guarded(
        host_of(*object), [&] { std::invoke(function, from_c<Object>(object), from_c<T>(args)...); }, translate);
  }
};
// With the object alone it ends it, and nobody is told of an error.
template <auto function, Translate translate, typename Object>
struct Thunk<function, translate, void(Object)> {
  static void LTC_CALL call(InC<Object> object) noexcept {
    const ltc_host_api* const host = host_of(*object);
    try {
      std::invoke(function, from_c<Object>(object));
    } catch (...) {
      log(host, LTC_LOG_ERROR, translate().message);
    }
  }
};

}  // namespace slots

// A slot of ltc_plugin_api from a function or method that returns void and may throw. Where the slot has a pointer, the function
// may have a reference: slot<&run> of void run(ltc_device&, const ltc_execute_args&, ltc_buffer** outputs, ltc_event*& done).
// Write an out parameter last, so that an error leaves it alone.
template <auto function, Translate translate = current_error>
inline constexpr auto slot =
    &slots::Thunk<function, translate, std::remove_pointer_t<decltype(slots::signature(function))>>::call;

// A slot that ends an object, where that is all.
template <typename Object>
void LTC_CALL destroy(Object* object) noexcept {
  delete object;
}

// The whole entry. `make` returns the instance; an exception of it refuses the host and is the reason.
template <typename Make>
bool enter(ltc_entry_args* args, ltc_version oldest, ltc_version newest, const ltc_plugin_api& api, Make&& make) noexcept {
  if (!ltc_agree(args, oldest, newest)) return false;
  try {
    args->plugin = make();
    args->api = &api;
    return true;
  } catch (...) {
    static thread_local char reason[512];
    std::snprintf(reason, sizeof reason, "%s", current_error().message.c_str());
    args->reason = reason;
    return false;
  }
}

// For ltc_plugin_info::sanitizers.
constexpr uint32_t sanitizers() {
#if defined(__SANITIZE_ADDRESS__)
  return LTC_SANITIZER_ADDRESS;
#elif defined(__SANITIZE_THREAD__)
  return LTC_SANITIZER_THREAD;
#else
  return 0;
#endif
}

// ---- checks of arguments ------------------------------------------------------------------------

// Bytes of an element, or of two for the dtypes that end in _X2; 0 for a dtype that is not known.
inline uint64_t element_bytes(ltc_dtype dtype) {
  constexpr uint8_t kBytes[] = {0, 1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 2, 4, 8, 4, 1, 1, 1, 1, 1, 1, 1, 1};
  return dtype < std::size(kBytes) ? kBytes[dtype] : 0;
}

// A bit per dtype, for ltc_device_info::dtypes of a device that holds bytes of any.
inline uint64_t all_dtypes() {
  uint64_t dtypes = 0;
  for (ltc_dtype dtype = 1; dtype < 64; ++dtype) dtypes |= uint64_t{element_bytes(dtype) > 0} << dtype;
  return dtypes;
}

// Bytes of a dense value.
inline uint64_t bytes_of(const ltc_type& type) {
  uint64_t bytes = element_bytes(type.dtype);
  if (bytes == 0) throw Failure(LTC_UNSUPPORTED, "the device holds no dtype " + std::to_string(type.dtype));
  bool overflows = false;
  for (uint32_t dim = 0; dim < type.rank; ++dim) {
    const int64_t size = type.sizes[dim];
    if (size < 0) throw Failure(LTC_INVALID_ARGUMENT, "a size is " + std::to_string(size));
    overflows |= __builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes);
  }
  if (overflows) throw Failure(LTC_RESOURCE_EXHAUSTED, "a value of more than 2^64 bytes");
  return bytes;
}

// For a plugin without options; ltc/options.hpp reads those of others.
inline void refuse_options(ltc_entry_args& args) {
  if (!ltc_has_no_options(&args)) throw Failure(LTC_INVALID_ARGUMENT, args.reason);
}

// `why_not`: the reason for no device, or nothing.
inline void check_ordinal(const ltc_device_args& args, size_t device_count, const std::string& why_not = {}) {
  if (args.ordinal < device_count) return;
  throw Failure(LTC_NOT_FOUND, "[device_open] there is no device " + std::to_string(args.ordinal) + " of " +
                                   std::to_string(device_count) + (why_not.empty() ? "" : ": " + why_not));
}

// Flags and direction of a transfer are known, its host memory is there.
inline void check_transfer(const ltc_transfer_args& args) {
  const auto refuse = [](ltc_code code, const std::string& why) { throw Failure(code, "[transfer] " + why); };
  const bool to_device = args.direction == LTC_TO_DEVICE, from_device = args.direction == LTC_FROM_DEVICE;
  const bool on_device = args.direction == LTC_ON_DEVICE;
  if (!to_device && !from_device && !on_device) refuse(LTC_UNSUPPORTED, "unknown direction " + std::to_string(args.direction));
  if (args.flags != 0) refuse(LTC_UNSUPPORTED, "unknown flags " + std::to_string(args.flags));
  if (!args.buffer) refuse(LTC_INVALID_ARGUMENT, from_device ? "no source buffer" : "no target buffer");
  if (on_device && !args.source) refuse(LTC_INVALID_ARGUMENT, "no source buffer");
  const bool has_memory = (!to_device || args.from) && (!from_device || args.to);
  if (args.size_bytes > 0 && !has_memory) {
    refuse(LTC_INVALID_ARGUMENT, "no host memory for " + std::to_string(args.size_bytes) + " bytes");
  }
}

// A time limit that clocks can count: LTC_FOREVER and others of more than a year are one.
inline std::chrono::nanoseconds limit_of(uint64_t timeout_ns) {
  constexpr uint64_t kYear = 365ull * 24 * 3600 * 1'000'000'000;
  return std::chrono::nanoseconds(std::min(timeout_ns, kYear));
}

// `role`: "source" or "target".
inline void check_range(const char* role, uint64_t offset, uint64_t size, uint64_t buffer_bytes) {
  if (offset <= buffer_bytes && size <= buffer_bytes - offset) return;
  throw Failure(LTC_INVALID_ARGUMENT, "[transfer] " + std::to_string(size) + " bytes at offset " + std::to_string(offset) +
                                          " leave the " + role + " buffer's " + std::to_string(buffer_bytes) + " bytes");
}

// The copy that a transfer asks for, of a device whose buffers lie in host memory. Call it to make it.
struct Copy {
  void* to;
  const void* from;
  uint64_t bytes;
  void operator()() const {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
};

// Checks the arguments. `memory` gives a buffer's std::span<char>.
template <std::invocable<ltc_buffer&> Memory>
Copy copy_of(const ltc_transfer_args& args, const Memory& memory) {
  check_transfer(args);
  const bool from_device = args.direction == LTC_FROM_DEVICE;
  const std::span<char> buffer = memory(*args.buffer);
  check_range(from_device ? "source" : "target", args.offset_bytes, args.size_bytes, buffer.size());
  char* const here = buffer.data() + args.offset_bytes;
  if (from_device) return {args.to, here, args.size_bytes};
  if (args.direction == LTC_TO_DEVICE) return {here, args.from, args.size_bytes};
  const std::span<char> source = memory(*args.source);
  check_range("source", args.source_offset_bytes, args.size_bytes, source.size());
  return {here, source.data() + args.source_offset_bytes, args.size_bytes};
}

// A run has as many inputs, scalars and outputs as were compiled.
inline void check_counts(const ltc_execute_args& args, size_t inputs, size_t scalars, size_t outputs) {
  const auto check = [](const char* what, size_t given, size_t compiled) {
    if (given == compiled) return;
    throw Failure(LTC_INVALID_ARGUMENT,
                  "[execute] " + std::to_string(given) + " " + what + " given, " + std::to_string(compiled) + " compiled");
  };
  check("inputs", args.input_count, inputs);
  check("scalars", args.scalar_count, scalars);
  check("outputs", args.output_count, outputs);
}

// ---- the host's cache ---------------------------------------------------------------------------

// The bytes of this key in the host's cache, or else those that `make` returns, which are kept. `about`: a line for people.
template <std::invocable Make>
std::string find_or_make(const ltc_host_api* host, const std::string& key, const std::string& about, Make&& make) {
  std::string bytes;
  const ltc_sink found{&bytes, [](void* to, const void* data, size_t size) {
                         static_cast<std::string*>(to)->assign(static_cast<const char*>(data), size);
                         return true;
                       }};
  const ltc_string name = borrowed(key), line = borrowed(about);
  if (host->cache_find(host->host, &name, &found)) return bytes;
  bytes = make();
  const ltc_string value = borrowed(bytes);
  host->cache_insert(host->host, &name, &line, &value);
  return bytes;
}

}  // namespace ltc::plugin
