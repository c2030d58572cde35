// Recipes as bytes: a magic number, a checksum, the fingerprint of the device, then the fields in order.
#include <algorithm>
#include <cstring>

#include "device/compiled_plan.h"
#include "ltc/plugin.hpp"

namespace ltc::device {
namespace {

using plugin::Failure;

constexpr uint64_t kMagic = 0x37302d6c636f2d6c;  // changes with the format

uint64_t checksum(std::span<const char> bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  return hash;
}

// One walk over the fields serves both ways.
class Writer {
 public:
  template <typename T>
  void number(T& value) {
    const auto wide = static_cast<uint64_t>(value);
    bytes_.append(reinterpret_cast<const char*>(&wide), sizeof wide);
  }
  void text(std::string& value) {
    size_t size = value.size();
    number(size);
    bytes_ += value;
  }
  template <typename T, typename Item>
  void list(std::vector<T>& values, Item item) {
    size_t size = values.size();
    number(size);
    for (T& value : values) item(value);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const char> bytes) : rest_(bytes) {}
  template <typename T>
  void number(T& value) {
    uint64_t wide = 0;
    std::memcpy(&wide, piece(sizeof wide), sizeof wide);
    value = static_cast<T>(wide);
  }
  void text(std::string& value) {
    size_t size = 0;
    number(size);
    const char* from = piece(size);
    value.assign(from, size);
  }
  template <typename T, typename Item>
  void list(std::vector<T>& values, Item item) {
    size_t size = 0;
    number(size);
    if (size > rest_.size()) corrupt();
    values.resize(size);
    for (T& value : values) item(value);
  }
  bool at_end() const { return rest_.empty(); }

  [[noreturn]] static void corrupt() { throw Failure(LTC_DATA_CORRUPT, "the saved executable is damaged"); }

 private:
  const char* piece(size_t size) {
    if (size > rest_.size()) corrupt();
    const char* at = rest_.data();
    rest_ = rest_.subspan(size);
    return at;
  }
  std::span<const char> rest_;
};

template <typename Archive>
void type(Archive& io, TensorType& type) {
  io.number(type.dtype);
  io.list(type.sizes, [&](int64_t& size) { io.number(size); });
}

template <typename Archive>
void launch(Archive& io, Launch& launch) {
  io.number(launch.source);
  io.number(launch.library);
  io.list(launch.buffers, [&](Binding& binding) { io.number(binding.kind), io.number(binding.index); });
  io.list(launch.scalars, [&](ScalarBinding& binding) { io.number(binding.index), io.number(binding.dtype); });
  io.list(launch.integers, [&](int64_t& integer) { io.number(integer); });
  io.number(launch.long_index);
  io.number(launch.local_size);
  io.number(launch.node);
  io.text(launch.label);
  io.number(launch.first_check);
}

template <typename Archive>
void product(Archive& io, kernels::Product& product) {
  io.number(product.dtype);
  io.number(product.result);
  for (int64_t* size : {&product.batch, &product.rows, &product.columns, &product.length}) io.number(*size);
  for (kernels::StridedMatrix* matrix : {&product.a, &product.b}) {
    io.number(matrix->value);
    for (int64_t* number : {&matrix->offset, &matrix->batch, &matrix->row, &matrix->column}) io.number(*number);
  }
  io.number(product.rounds);
  io.number(product.epilogue.bias);
  io.number(product.epilogue.activation);
  io.number(product.epilogue.keeps_input);
  io.number(product.scaled_b);
}

template <typename Archive>
void convolution(Archive& io, kernels::LibraryConvolution& c) {
  io.number(c.pass);
  io.number(c.dtype);
  for (kernels::Sizes* sizes : {&c.x, &c.w, &c.y, &c.stride, &c.padding, &c.dilation}) {
    io.list(*sizes, [&](int64_t& size) { io.number(size); });
  }
  io.number(c.groups);
  io.number(c.rounds);
}

template <typename Archive>
void library(Archive& io, LibraryWork& work) {
  size_t kind = work.index();
  io.number(kind);
  if (kind != work.index()) work = kernels::LibraryConvolution{};
  if (auto* c = std::get_if<kernels::LibraryConvolution>(&work)) return convolution(io, *c);
  product(io, std::get<kernels::Product>(work));
}

template <typename Archive>
void compiled_plan(Archive& io, CompiledPlan& compiled_plan, std::vector<std::string>& binaries,
                   std::vector<uint8_t>& is_scalar) {
  io.list(compiled_plan.inputs, [&](TensorType& value) { type(io, value); });
  io.list(compiled_plan.outputs, [&](TensorType& value) { type(io, value); });
  io.list(compiled_plan.takes_over, [&](uint32_t& input) { io.number(input); });
  io.list(compiled_plan.scalars, [&](ltc_dtype& dtype) { io.number(dtype); });
  io.list(is_scalar, [&](uint8_t& flag) { io.number(flag); });
  io.list(compiled_plan.slots, [&](uint64_t& bytes) { io.number(bytes); });
  io.list(compiled_plan.sources, [&](std::string& text) { io.text(text); });
  io.list(compiled_plan.library, [&](LibraryWork& value) { library(io, value); });
  io.list(binaries, [&](std::string& text) { io.text(text); });
  io.list(compiled_plan.launches, [&](Launch& value) { launch(io, value); });
  io.list(compiled_plan.checks, [&](kernels::Check& check) { io.number(check.source), io.number(check.size); });
  io.list(compiled_plan.good_outputs, [&](uint8_t& flag) { io.number(flag); });
}

// Two operands and a result, and what scales and an epilogue need.
size_t buffer_count(const LibraryWork& work) {
  const auto* product = std::get_if<kernels::Product>(&work);
  return product ? size_t{3} + (product->scaled_b ? 2 : 0) + product->epilogue.bias + product->epilogue.keeps_input : 3;
}

// Checks all that a damaged file could send outside of an array.
void check(const CompiledPlan& compiled_plan, const std::vector<std::string>& binaries) {
  bool good = binaries.size() == compiled_plan.sources.size() &&
              compiled_plan.takes_over.size() == compiled_plan.outputs.size() &&
              compiled_plan.good_outputs.size() == compiled_plan.outputs.size();
  for (size_t i = 0; good && i < compiled_plan.outputs.size(); ++i) {
    const uint32_t input = compiled_plan.takes_over[i];
    good = input == LTC_NONE ||
           (input < compiled_plan.inputs.size() && compiled_plan.inputs[input].bytes() == compiled_plan.outputs[i].bytes());
  }
  for (const Launch& launch : compiled_plan.launches) {
    const bool is_kernel = launch.library == LTC_NONE;
    good = good && (is_kernel ? launch.source < compiled_plan.sources.size() && !launch.integers.empty() && launch.local_size > 0
                              : launch.library < compiled_plan.library.size() &&
                                    launch.buffers.size() == buffer_count(compiled_plan.library[launch.library]));
    for (const Binding& binding : launch.buffers) {
      const size_t count = binding.kind == Binding::Kind::kInput    ? compiled_plan.inputs.size()
                           : binding.kind == Binding::Kind::kOutput ? compiled_plan.outputs.size()
                           : binding.kind == Binding::Kind::kSlot   ? compiled_plan.slots.size()
                                                                    : std::min<size_t>(compiled_plan.checks.size(), 1);
      good = good && binding.index < count;
    }
    for (const ScalarBinding& binding : launch.scalars) {
      good = good && (binding.index < compiled_plan.scalars.size() || binding.index == ScalarBinding::kFaultCode);
    }
  }
  if (!good) Reader::corrupt();
}

}  // namespace

std::string write_compiled_plan(const CompiledPlan& compiled_plan, std::span<const std::string> binaries,
                                const std::string& fingerprint) {
  CompiledPlan copy = compiled_plan;
  std::vector<std::string> blobs(binaries.begin(), binaries.end());
  std::vector<uint8_t> is_scalar(compiled_plan.is_scalar.begin(), compiled_plan.is_scalar.end());
  Writer body;
  std::string device = fingerprint;
  body.text(device);
  device::compiled_plan(body, copy, blobs, is_scalar);
  const std::string bytes = body.take();
  Writer head;
  uint64_t magic = kMagic, sum = checksum(bytes);
  head.number(magic);
  head.number(sum);
  return head.take() + bytes;
}

CompiledPlan read_compiled_plan(std::span<const char> bytes, std::vector<std::string>& binaries, const std::string& fingerprint) {
  Reader head(bytes);
  uint64_t magic = 0, sum = 0;
  head.number(magic);
  head.number(sum);
  if (magic != kMagic) throw Failure(LTC_DATA_CORRUPT, "no saved executable of this version of the plugin");
  if (checksum(bytes.subspan(16)) != sum) Reader::corrupt();
  Reader body(bytes.subspan(16));
  std::string device;
  body.text(device);
  if (device != fingerprint) throw Failure(LTC_UNSUPPORTED, "saved for another device: " + device);
  CompiledPlan compiled_plan;
  std::vector<uint8_t> is_scalar;
  device::compiled_plan(body, compiled_plan, binaries, is_scalar);
  compiled_plan.is_scalar.assign(is_scalar.begin(), is_scalar.end());
  if (!body.at_end()) Reader::corrupt();
  check(compiled_plan, binaries);
  return compiled_plan;
}

}  // namespace ltc::device
