// The types of a graph's inputs and outputs, kept to check its runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ltc/plugin.h"
#include "ltc/symbolic.h"

namespace ltc::host::validation {

constexpr uint32_t kFirstOfVendors = 0x10000;  // of dtypes and of codes

// A symbolic size of one of the types: its dim is scale * symbol + offset.
struct Formula {
  size_t dim;
  uint32_t symbol;
  int64_t scale, offset;
};

struct Type {
  ltc_dtype dtype = 0;
  std::vector<int64_t> sizes;
  std::vector<Formula> formulas;

  static Type of(const ltc_type& type);
  Type with(const int64_t* symbols) const;  // the type of a run
  std::optional<uint64_t> bytes() const;    // empty for a vendor's dtype
  std::string text() const;                 // "f32[2, 3]"
  bool operator==(const Type& other) const { return dtype == other.dtype && sizes == other.sizes; }
};

bool is_known_dtype(ltc_dtype dtype);  // of ABI 1.0, or a vendor's

struct Signature {
  size_t node_count = 0;
  std::vector<Type> inputs, outputs;
  std::vector<bool> may_donate;  // per input
  std::vector<ltc_dtype> scalars;
  bool is_symbolic = false;
  size_t symbol_count = 0;

  // The graph was found to be valid. `symbols` may be null.
  static Signature of(const ltc_graph& graph, const ltc_symbolic_sizes* symbols);
};

}  // namespace ltc::host::validation
