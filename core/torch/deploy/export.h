// A captured function as an archive keeps it, and the writer of archives. core/deploy reads them.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <complex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/torch/capture/captured_function.h"

namespace ltc {

struct ExportedFunction {
  struct Source {
    enum Kind : uint8_t { kArgument, kConstant, kOutput } kind;
    uint32_t index;  // of the function's arguments, of `constants`, or of the graph's outputs
  };
  struct Number {
    std::string dtype;
    std::variant<int64_t, double, std::complex<double>> value;
    uint32_t seed_of = kNone, offset_of = kNone;  // the draw that it belongs to, if any
  };
  struct Draw {
    std::shared_ptr<void> generator;  // an at::Generator
    uint64_t seed, offset;            // where it stood
    uint64_t advance;                 // that its offset moves by at each call
  };
  struct Update {
    uint32_t argument;
    Source from;
  };

  std::string graph, text, json;  // as bytes, and twice for people
  std::vector<Source> params;     // of the graph's params that are buffers
  std::vector<Number> numbers;    // of those that are not
  std::vector<Draw> draws;
  std::vector<Source> results;        // by result
  std::vector<Update> updates;        // of arguments that the function writes
  std::vector<at::Tensor> constants;  // on the CPU
  std::vector<std::string> host_ops;  // that the plugin does not run, with reason and line
};

// Puts the generators back to where they stood when the function was captured.
LTC_API void rewind_generators(const CapturedFunction& function);

// `host_ops` are not known of a function that was not compiled. Throws where an argument, or a result, is a part of a storage:
// an archive has whole values only.
LTC_API ExportedFunction export_function(LazyDevice& device, const CapturedFunction& function);

// A graph taken apart (core/compile/lowering/symbolic_graph.h): graphs with equal structures differ in numbers only.
struct GraphNumbers {
  std::string structure;  // as bytes
  std::vector<int64_t> numbers;
  // By number: the value and kNone, or the node and which of its attributes; then the dim, or the element of the attribute.
  std::vector<std::array<uint32_t, 3>> places;
};
LTC_API GraphNumbers graph_numbers(const std::string& graph);

// An entry of an archive: bytes, or tensors of the CPU as a safetensors file.
struct ArchiveEntry {
  std::string name, bytes;
  std::vector<std::pair<std::string, at::Tensor>> tensors = {};
  bool is_tensors = false;
};
// Throws what deploy::write_zip throws.
LTC_API void write_archive(const std::string& path, const std::vector<ArchiveEntry>& entries);

}  // namespace ltc
