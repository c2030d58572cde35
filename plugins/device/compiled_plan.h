// An executable as plain data, which can be written to a file and read again.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "kernels/plan/planner.h"
#include "ltc/plugin.h"

namespace ltc::device {

struct TensorType {
  ltc_dtype dtype = 0;
  std::vector<int64_t> sizes;
  bool operator==(const TensorType&) const = default;

  uint64_t bytes() const;  // UINT64_MAX: more than can be said
  std::string text() const;
};
TensorType type_of(const ltc_type& type);

// The text of a kernel for the device's compiler. Its function bears the ops' names, so that tools for the device show them.
struct KernelSource {
  std::string function, text;
};

// Where the memory of a kernel's argument comes from.
struct Binding {
  enum class Kind : uint8_t { kInput, kOutput, kSlot, kFaults } kind;  // kFaults: the device's word of that (faults.h)
  uint32_t index;
};

struct ScalarBinding {
  static constexpr uint32_t kFaultCode = LTC_NONE;
  uint32_t index;   // among the scalars of a run; or the code of the launch
  ltc_dtype dtype;  // what the kernel takes
};

// Work for a library.
using LibraryWork = std::variant<kernels::Product, kernels::LibraryConvolution, kernels::Collective>;

// One kernel to be enqueued, its arguments in the order of kernels/print/render.h; or what a library computes, from two buffers
// into a third, or as kernels::Collective says.
struct Launch {
  uint32_t source;   // LTC_NONE: a library's
  uint32_t library;  // LTC_NONE: a kernel
  std::vector<Binding> buffers;
  std::vector<ScalarBinding> scalars;
  std::vector<int64_t> integers;
  bool long_index;
  uint64_t local_size;  // work items of a group
  uint32_t node;        // for messages
  std::string label;
  uint32_t first_check = 0;  // of those of the compiled plan that its kernel makes
  // For profiles:
  std::vector<uint32_t> nodes;  // that it computes, of the graph of the ABI
  std::string note;             // why it is not one with the kernel that makes its inputs
  uint64_t bytes = 0;           // of its buffers
};

// A value between kernels: for profiles.
struct ScratchUse {
  uint32_t node, output;  // of the graph of the ABI; LTC_NONE: work memory
  uint32_t slot;
  uint64_t bytes;
  uint32_t first, last;  // launches
};

struct CompiledPlan {
  std::vector<TensorType> inputs, outputs;
  std::vector<uint32_t> takes_over;  // by output: the input whose memory becomes its own where that is donated, or LTC_NONE
  std::vector<ltc_dtype> scalars;
  std::vector<bool> is_scalar;        // by param of the graph
  std::vector<uint64_t> slots;        // bytes of memory that a run needs for what lies between
  std::vector<KernelSource> sources;  // distinct
  std::vector<LibraryWork> library;
  std::vector<Launch> launches;
  std::vector<kernels::Check> checks;
  std::vector<ScratchUse> scratch;
  std::vector<uint8_t> good_outputs;  // by output: 1 where it is known to depend on no node that has a check

  std::string text() const;                   // the launches, for people
  size_t checked_launches() const;            // those up to the last one that has checks
  std::vector<size_t> first_writers() const;  // by output: the first launch that uses its memory
};

// How a device wants its graphs.
struct Lowering {
  const kernels::Dialect& dialect;
  kernels::Options options;
  uint64_t elements_local, rows_local;  // work items of a group, for kernels without and with loops
  // The kernel of a product that options.library_product takes, for groups of one; null: a library computes it.
  kernels::Source (*product)(const kernels::Product&) = nullptr;
  // A run with donations waits for its last check before it goes on: until then donated memory is not overwritten, so that a run
  // with a bad index consumes nothing.
  bool checks_before_donations = false;
};

// Renders the plan, and plans its memory: what is dead makes room for what comes.
CompiledPlan compile_plan(const kernels::Plan& plan, const Lowering& lowering);

// Bytes for executable_save, with the binaries of the sources, and back. read throws DATA_CORRUPT.
std::string write_compiled_plan(const CompiledPlan& compiled_plan, const std::vector<std::string>& binaries,
                                const std::string& fingerprint);
CompiledPlan read_compiled_plan(std::string_view bytes, std::vector<std::string>& binaries, const std::string& fingerprint);

}  // namespace ltc::device
