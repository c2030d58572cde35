// A small archive in memory, for tests: function `step` adds its input to the state `sum` and gives the double of it.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/deploy/archive.h"
#include "core/ir/binary.h"
#include "core/ir/text.h"

namespace ltc::deploy::testing {

inline constexpr std::string_view kGraph = R"(graph(%0: f32[2,3], %1: f32[2,3] -> 0, %2: f64 scalar) {
  %3: f32[2,3] = aten::add.Tensor(%1, %0, %2)
  %4: f32[2,3] = aten::mul.Tensor(%3, %2)
  return %3, %4
})";

inline constexpr std::string_view kManifest = R"({
  "format": 1, "producer": "a test", "state": ["sum"], "constants": [], "generators": [{"seed": 7, "offset": 3}],
  "functions": [{
    "name": "step", "graph": "step.bin", "text": "step.txt",
    "inputs": [{"name": "x", "dtype": "f32", "shape": [2, 3]}],
    "results": [{"name": "doubled", "dtype": "f32", "shape": [2, 3], "from": {"output": 1}}],
    "params": [{"input": 0}, {"state": "sum"}],
    "numbers": [{"dtype": "f64", "value": 2.0}],
    "draws": [{"generator": 0, "advance": 2}],
    "updates": [{"state": "sum", "from": {"output": 0}}],
    "samples": []
  }]
})";

struct Entries {
  std::string manifest{kManifest}, graph{kGraph};
  std::vector<float> sum{1, 2, 3, 4, 5, 6};

  // As a file: aligned as a mapped one is.
  std::string bytes() const {
    const std::string_view data(reinterpret_cast<const char*>(sum.data()), sum.size() * sizeof(float));
    const std::vector<int64_t> sizes{2, 3};
    std::vector<NamedTensor> tensors{{"sum", intern_contiguous(DType::kF32, sizes), data}};
    const std::string header = safetensors_header(tensors);
    ByteWriter code;
    write_graph(code, parse(graph));
    const std::string code_bytes = code.take();
    const std::vector<NewEntry> entries{
        {kManifestEntry, {manifest}}, {"step.bin", {code_bytes}}, {"step.txt", {graph}}, {kValuesEntry, {header, data}}};
    return zip_bytes(entries);
  }
};

// The same archive with another function: `scale` multiplies an input of any number of rows, from 1 to 100, by that number.
inline constexpr std::string_view kSizedGraph = R"(graph(%0: f32[2,3], %1: f64 scalar) {
  %2: f32[2,3] = aten::mul.Tensor(%0, %1)
  return %2
})";

inline constexpr std::string_view kSizedManifest = R"({
  "format": 1, "producer": "a test", "state": ["sum"], "constants": [], "generators": [],
  "functions": [{
    "name": "scale", "graph": "step.bin", "text": "step.txt",
    "dimensions": [{"name": "rows", "min": 1, "max": 100, "example": 2}],
    "sizes": [{"is": "rows", "at": [[0, -1, 0], [2, -1, 0]]}],
    "inputs": [{"name": "x", "dtype": "f32", "shape": ["rows", 3]}],
    "results": [{"name": "scaled", "dtype": "f32", "shape": ["rows", 3], "from": {"output": 0}}],
    "params": [{"input": 0}],
    "numbers": [{"dtype": "f64", "value": 2.0, "size": "rows"}],
    "draws": [],
    "updates": [],
    "samples": []
  }]
})";

inline Entries sized_entries() { return {std::string(kSizedManifest), std::string(kSizedGraph)}; }

inline std::string replaced(std::string text, std::string_view from, std::string_view to) {
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace ltc::deploy::testing
