// Runs plans on the host, for tests: their kernels compiled by the system's compiler, in the host dialect as it is, in CUDA's
// with a fiber per thread (emulation.h); what they give is compared with the conformance suite's reference.
#pragma once
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/ops/cases.h"
#include "conformance/ops/reference.h"
#include "core/ir/graph.h"
#include "kernels/plan/planner.h"

namespace ltc::kernels {

using KernelFunction = void(void* const*, int64_t, int64_t);
using EmulatedFunction = bool(void* const*, int64_t, int64_t);

// Kernels compiled together: starting the compiler costs more than a kernel does.
class Library {
 public:
  explicit Library(const Dialect& dialect = host_dialect()) : dialect_(dialect) {}
  const Dialect& dialect() const { return dialect_; }
  bool is_emulated() const { return !dialect_.arguments_in_array; }

  size_t add(const std::string& kernel);
  void build(const std::string& flags);
  KernelFunction* function(size_t i) const;
  EmulatedFunction* emulated(size_t i) const;

 private:
  std::string text() const;

  const Dialect& dialect_;
  std::map<std::string, size_t> index_;
  std::vector<std::string> kernels_;
  void* handle_ = nullptr;
};

struct Prepared {
  Prepared(const ltc::Graph& from, conformance::Tolerance how_close, std::string_view letters, Library& library,
           const Options& options);
  ltc::Graph graph;
  conformance::Tolerance tolerance;
  std::string_view fills;
  Plan plan;
  std::vector<Source> sources;
  std::vector<size_t> functions;
};

void run_step(const Step& step, const Source& source, const Library& library, size_t function,
              std::vector<std::vector<std::byte>>& memory, const std::map<uint32_t, Scalar>& scalars);

// Runs what was prepared, on inputs as its letters say: the number of a check in its kernel that failed, if one did.
std::optional<uint64_t> failed_check(const Prepared& prepared, const Library& library);

// Runs it, and compares with what the reference computes of the other graph. No check may fail.
void check(const Prepared& prepared, const ltc::Graph& reference, const Library& library);

// In CUDA's dialect, against the minimal forms of the graphs.
void check_graphs(std::span<const conformance::ProgramCase> cases, const Options& options);

}  // namespace ltc::kernels
