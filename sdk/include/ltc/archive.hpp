// Helper for plugins in C++20: objects as bytes and back, for executable_save and executable_load.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ltc/plugin.hpp"

namespace ltc::plugin {

// Writes fields, or reads them back: one function serves both. Other types than those below need a function
// void archive(Archive&, T&) beside them, which passes their fields on: io(value.count, value.names). Bytes are read only by the
// kind of processor that wrote them.
class Archive {
 public:
  Archive() = default;                                                      // writes
  explicit Archive(std::string_view bytes) : rest_(bytes), reads_(true) {}  // reads; the bytes outlive it

  template <typename... T>
  void operator()(T&... fields) {
    (field(fields), ...);
  }
  bool reads() const { return reads_; }
  bool at_end() const { return rest_.empty(); }
  const std::string& bytes() const { return bytes_; }

  [[noreturn]] static void refuse() { throw Failure(LTC_DATA_CORRUPT, "the saved executable is damaged"); }

 private:
  // Any integer, bool or enumeration: 7 bits a byte, the lowest first, until one without its highest bit (LEB128). Signed ones
  // are zigzag: 0, -1, 1, -2.
  template <typename T>
  requires std::is_integral_v<T> || std::is_enum_v<T>
  void field(T& value) {
    if constexpr (std::is_enum_v<T>) {
      auto number = static_cast<std::underlying_type_t<T>>(value);
      field(number);
      value = static_cast<T>(number);
    } else if constexpr (std::is_signed_v<T>) {
      const auto wide = static_cast<int64_t>(value);
      uint64_t folded = static_cast<uint64_t>(wide) << 1 ^ static_cast<uint64_t>(wide >> 63);
      number(folded);
      const auto unfolded = static_cast<int64_t>(folded >> 1 ^ (~(folded & 1) + 1));
      value = narrow<T>(unfolded);
    } else {
      uint64_t wide = value;
      number(wide);
      value = narrow<T>(wide);
    }
  }
  template <typename T, typename Wide>
  static T narrow(Wide wide) {
    if (static_cast<Wide>(static_cast<T>(wide)) != wide) refuse();
    return static_cast<T>(wide);
  }
  void number(uint64_t& value) {
    if (reads_) {
      value = 0;
      for (int shift = 0;; shift += 7) {
        const auto byte = static_cast<uint8_t>(*take(1));
        if (shift > 63 || (shift == 63 && byte > 1)) refuse();
        value |= static_cast<uint64_t>(byte & 0x7F) << shift;
        if (byte == 0 && shift > 0) refuse();  // another form of a shorter one
        if (byte < 0x80) return;
      }
    }
    uint64_t rest = value;
    for (; rest >= 0x80; rest >>= 7) bytes_ += static_cast<char>(rest | 0x80);
    bytes_ += static_cast<char>(rest);
  }
  template <typename T>
  requires std::is_floating_point_v<T>
  void field(T& value) {
    auto wide = static_cast<double>(value);
    if (reads_) {
      std::memcpy(&wide, take(sizeof wide), sizeof wide);
      value = static_cast<T>(wide);
    } else {
      bytes_.append(reinterpret_cast<const char*>(&wide), sizeof wide);
    }
  }
  void field(std::string& value) {
    uint64_t size = value.size();
    field(size);
    if (reads_) {
      value.assign(take(size), size);
    } else {
      bytes_ += value;
    }
  }
  template <typename T>
  void field(std::vector<T>& values) {
    uint64_t size = values.size();
    field(size);
    if (reads_ && size > rest_.size()) refuse();  // each takes a byte at least
    values.resize(size);
    for (T& value : values) field(value);
  }
  void field(std::vector<bool>& values) {
    std::vector<uint8_t> flags(values.begin(), values.end());
    field(flags);
    for (const uint8_t flag : flags) {
      if (flag > 1) refuse();
    }
    values.assign(flags.begin(), flags.end());
  }
  template <typename T>
  requires std::is_class_v<T>
  void field(T& value) { archive(*this, value); }

  const char* take(uint64_t size) {
    if (size > rest_.size()) refuse();
    const char* const at = rest_.data();
    rest_.remove_prefix(size);
    return at;
  }

  std::string bytes_;
  std::string_view rest_;
  bool reads_ = false;
};

// FNV-1a of 64 bits (http://www.isthe.com/chongo/tech/comp/fnv).
inline uint64_t checksum(std::string_view bytes) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const char byte : bytes) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001B3;
  return hash;
}

// The objects as bytes. `format` tells the bytes of this plugin from others: change it with the fields.
template <typename... T>
std::string save(std::string_view format, const T&... objects) {
  Archive body;
  body(const_cast<T&>(objects)...);  // a writer changes nothing
  const uint64_t head[] = {checksum(format), checksum(body.bytes())};
  return std::string(reinterpret_cast<const char*>(head), sizeof head) + body.bytes();
}

// Sets the objects to those that were saved. Throws DATA_CORRUPT for bytes of another format, and for damaged ones. Fields may
// still hold any value where somebody forged the checksum: check what is used as an index.
template <typename... T>
void load(std::string_view format, std::string_view bytes, T&... objects) {
  uint64_t head[2];  // of format and fields
  if (bytes.size() < sizeof head) Archive::refuse();
  std::memcpy(head, bytes.data(), sizeof head);
  if (head[0] != checksum(format)) throw Failure(LTC_DATA_CORRUPT, "no saved executable of this version of the plugin");
  const std::string_view rest = bytes.substr(sizeof head);
  if (head[1] != checksum(rest)) Archive::refuse();
  Archive body(rest);
  body(objects...);
  if (!body.at_end()) Archive::refuse();
}

}  // namespace ltc::plugin
