// The manifest of an archive: what its functions take, give and change, and where their graphs and values are.
//
// It is JSON of a fixed set of members: docs/archive.md lists them. Errors: DATA_CORRUPT, or UNSUPPORTED for a member that is not
// known here or another format; each says where.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/deploy/sizes.h"
#include "core/ir/type.h"

namespace ltc::deploy {

inline constexpr int64_t kFormat = 1;

// The value that a param of a graph, a result or a state is given.
struct ValueSource {
  enum Kind : uint8_t { kInput, kState, kConstant, kOutput } kind = kInput;
  uint32_t index = 0;  // of the function's inputs, of the manifest's state or constants, of the graph's outputs
  bool operator==(const ValueSource&) const = default;
};

struct NamedType {
  std::string name;
  TypeId type = kNoType;       // contiguous; of the example's sizes
  std::vector<Formula> sizes;  // by dim; empty where all are fixed

  std::string text(std::span<const Dimension> dimensions) const;  // "f32[batch,4]"
  TypeId type_at(std::span<const int64_t> of_dimensions) const;   // throws INVALID_ARGUMENT for one that is too large
};

// A number that the graph takes by value.
struct Number {
  enum Kind : uint8_t { kValue, kSeed, kOffset } kind = kValue;
  DType dtype = DType::kNone;
  Scalar value = {};
  uint32_t draw = 0;          // of a seed or an offset
  std::vector<Formula> size;  // one where the value follows from the sizes of the call, else none

  Scalar value_at(std::span<const int64_t> sizes) const;  // the value, unless it is of a draw
};

// Numbers that each call takes from a generator.
struct Draw {
  uint32_t generator = 0;
  Formula advance;  // that the generator's offset moves by
};

struct Update {
  uint32_t state;
  ValueSource from;
};

struct FunctionManifest {
  std::string name, graph;            // `graph`: the entry with its bytes
  std::vector<Dimension> dimensions;  // none where all sizes are fixed
  std::vector<SizeRule> size_rules;   // of the graph
  std::vector<NamedType> inputs, results;
  std::vector<ValueSource> params;  // of the graph's params that are buffers, in order
  std::vector<Number> numbers;      // of those that are not
  std::vector<Draw> draws;
  std::vector<ValueSource> result_sources;  // by result
  std::vector<Update> updates;
  std::vector<std::string> samples;  // entries, each a safetensors file

  std::string signature() const;  // "f(x: f32[batch,4]) -> (result: f32[batch])"
  std::string ranges() const;     // "batch from 1 to 8, rows from 2"; empty where all sizes are fixed
};

// A function compiled for a device, as the plugin saves it. It is code: who loads it trusts the file.
struct Executable {
  std::string function, target, entry;  // `target`: as Model::target() in model.h
};

struct Generator {
  uint64_t seed = 0, offset = 0;
};

struct Manifest {
  std::string producer;
  std::vector<std::pair<std::string, std::string>> metadata;  // of the one who exported it; keys and values, by key
  std::vector<std::string> state, constants;                  // the names of tensors of the values
  std::vector<Generator> generators;
  std::vector<FunctionManifest> functions;
  std::vector<Executable> executables;
};

// `where` names the text in errors.
Manifest read_manifest(std::string_view text, const std::string& where);

}  // namespace ltc::deploy
