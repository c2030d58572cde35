#include "pjrt/export/npy.h"

#include <bit>
#include <fstream>
#include <iterator>
#include <regex>

namespace ltc::pjrt {
namespace {

static_assert(std::endian::native == std::endian::little);  // as the files are

constexpr std::string_view kMagic("\x93NUMPY\x01\x00", 8);
constexpr size_t kPrefix = kMagic.size() + 2;  // and the size of the header

struct Descr {
  DType dtype;
  std::string_view text;
};
constexpr Descr kDescrs[] = {
    {DType::kBool, "|b1"}, {DType::kU8, "|u1"},  {DType::kI8, "|i1"},  {DType::kI16, "<i2"}, {DType::kI32, "<i4"},
    {DType::kI64, "<i8"},  {DType::kU16, "<u2"}, {DType::kU32, "<u4"}, {DType::kU64, "<u8"}, {DType::kF16, "<f2"},
    {DType::kBF16, "<u2"}, {DType::kF32, "<f4"}, {DType::kF64, "<f8"}, {DType::kC64, "<c8"}, {DType::kC128, "<c16"},
};

std::string_view descr(DType dtype) {
  for (const Descr& row : kDescrs) {
    if (row.dtype == dtype) return row.text;
  }
  fail(Code::kUnsupported, "no form in .npy for ", dtype_name(dtype));
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (!file) fail(Code::kNotFound, "cannot read ", path.string());
  return bytes;
}

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) fail(Code::kResourceExhausted, "cannot write ", path.string());
}

void write_npy(const std::filesystem::path& path, const Array& array) {
  std::string shape;
  for (const int64_t size : array.sizes) shape += cat(shape.empty() ? "" : ", ", size);
  if (array.sizes.size() == 1) shape += ',';
  std::string header = cat("{'descr': '", descr(array.dtype), "', 'fortran_order': False, 'shape': (", shape, "), }");
  header.resize((kPrefix + header.size()) / 64 * 64 + 64 - kPrefix - 1, ' ');
  header += '\n';
  std::string bytes(kMagic);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size());
  write_file(path, bytes);
}

Array read_npy(const std::filesystem::path& path, DType dtype) {
  const std::string bytes = read_file(path);
  const auto check = [&](bool holds, const char* message) {
    if (!holds) fail(Code::kDataCorrupt, path.string(), " ", message);
  };
  check(bytes.size() >= kPrefix && bytes.starts_with(kMagic), "is no .npy file of version 1.0");
  const size_t size = static_cast<unsigned char>(bytes[8]) + 256u * static_cast<unsigned char>(bytes[9]);
  check(bytes.size() >= kPrefix + size, "ends in its header");
  const std::string header = bytes.substr(kPrefix, size);
  static const std::regex kHeader(R"(\{'descr': '([^']+)', 'fortran_order': False, 'shape': \(([0-9, ]*)\), \} *\n)");
  std::smatch match;
  check(std::regex_match(header, match, kHeader), "has another header than NumPy writes for a row-major array");
  check(match.str(1) == descr(dtype), "is of another dtype than the index says");
  conformance::Sizes sizes;
  const std::string shape = match.str(2);
  static const std::regex kNumber("[0-9]+");
  for (std::sregex_iterator at(shape.begin(), shape.end(), kNumber), end; at != end; ++at) sizes.push_back(std::stoll(at->str()));
  Array array;
  array.dtype = dtype;
  array.sizes = sizes;
  const size_t rest = bytes.size() - kPrefix - size;
  check(static_cast<size_t>(array.count()) * dtype_size_bytes(dtype) == rest, "has more or fewer bytes than its shape");
  array.bytes.resize(rest);
  if (rest) std::memcpy(array.bytes.data(), bytes.data() + kPrefix + size, rest);
  return array;
}

}  // namespace ltc::pjrt
