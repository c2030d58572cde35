// Bytes for the disk: numbers, texts, lists. For the machine that wrote them; what is read back is checked, as files are damaged
// or come from elsewhere.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace ltc {

class ByteWriter {
 public:
  template <typename Number>
  void number(Number value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <typename Number>
  void numbers(const std::vector<Number>& values) {
    number<uint64_t>(values.size());
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Number));
  }
  void text(std::string_view text) {
    number<uint64_t>(text.size());
    bytes_.append(text);
  }
  void bytes(std::string_view bytes) { bytes_.append(bytes); }  // as they are, with no count

  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Throws Error(kDataCorrupt) where the bytes end too early.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  template <typename Number>
  Number number() {
    Number value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  template <typename Number>
  std::vector<Number> numbers() {
    const size_t count = length(sizeof(Number));
    const std::string_view bytes = take(count * sizeof(Number));
    std::vector<Number> values(count);
    if (count) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  std::string_view text() { return take(length(1)); }
  std::string_view take(size_t size);  // the next bytes
  // A count of things that take at least `least` bytes each.
  size_t length(size_t least);
  bool at_end() const { return rest_.empty(); }
  size_t left() const { return rest_.size(); }  // bytes

 private:
  std::string_view rest_;
};

std::string size_text(int64_t bytes);  // "1.5 MB", for people

}  // namespace ltc
