// Errors inside the core: one exception type that carries a canonical code. Nothing else is thrown on purpose.
//
// Across the C ABI an error is an ltc_status (host/status.h converts), towards PyTorch a c10::Error (torch/ converts).
// An error of asynchronous work is kept as a std::exception_ptr in what the work was to produce and thrown where that is read.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>

#include "core/base/api.h"

namespace ltc {

// The codes of the C ABI (ltc_code), in its order.
enum class Code : uint32_t {
  kInvalidArgument = 1,  // the caller broke the contract: a shape, a count, a null
  kNotFound,             // no such backend, file, symbol, op
  kUnsupported,          // legal, but this plugin, device or build cannot do it
  kResourceExhausted,    // out of memory or of queue; may work after freeing some
  kDeviceLost,           // the device is gone; sticky
  kCancelled,            // given up because what it depended on failed or was shut down
  kTimeout,              // did not finish in the time given
  kDataCorrupt,          // a file or a program fails its own checks
  kInternal,             // a defect in the core or the plugin
  kOutOfRange,           // an element of an index tensor is out of range
};

const char* code_name(Code code);

class Error : public std::runtime_error {
 public:
  // what() is the message as message_text (utf8.h) has it: PyTorch and Python take any error's text for UTF-8.
  Error(Code code, const std::string& message);
  Code code() const { return code_; }

 private:
  Code code_;
};

// A value of a text: what cat() joins, without a template's code for each list of types.
class TextPart {  // NOLINT(google-explicit-constructor)
 public:
  TextPart(std::string_view text) : kind_(kText), text_{text.data(), text.size()} {}
  TextPart(const std::string& text) : TextPart(std::string_view(text)) {}
  TextPart(const char* text) : kind_(kCString), address_(text) {}
  TextPart(char character) : kind_(kCharacter), number_(character) {}
  TextPart(bool value) : kind_(kNumber), number_(value) {}
  TextPart(std::signed_integral auto number) : kind_(kNumber), number_(number) {}
  TextPart(std::unsigned_integral auto number) : kind_(kUnsigned), unsigned_(number) {}
  TextPart(double number) : kind_(kFloat), float_(number) {}
  TextPart(const void* address) : kind_(kAddress), address_(address) {}

  void append_to(std::string& text) const;

 private:
  enum Kind : uint8_t { kText, kCString, kCharacter, kNumber, kUnsigned, kFloat, kAddress } kind_;
  union {
    struct {
      const char* data;
      size_t size;
    } text_;
    int64_t number_;
    uint64_t unsigned_;
    double float_;
    const void* address_;
  };
};

LTC_API std::string join(std::initializer_list<TextPart> parts);
[[noreturn]] LTC_API void fail_with(Code code, std::initializer_list<TextPart> parts);

// Joins values into a text, as a message wants them: cat("got ", 3, " of ", n).
template <typename... Parts>
std::string cat(const Parts&... parts) {
  return join({TextPart(parts)...});
}

template <typename... Parts>
[[noreturn]] void fail(Code code, const Parts&... parts) {
  fail_with(code, {TextPart(parts)...});
}

// For what the core itself guarantees: a false condition is a defect of ours.
template <typename... Parts>
void ensure(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]]
    fail_with(Code::kInternal, {TextPart(parts)...});
}

}  // namespace ltc
