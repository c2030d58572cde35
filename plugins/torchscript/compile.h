// A program as a flat list of resolved operators over numbered slots, and its run loop.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ltc/profile.hpp"
#include "torchscript/fusion/tile_program.h"
#include "torchscript/graph/op_traits.h"
#include "torchscript/graph/program.h"
#include "torchscript/threads/threads.h"

struct ltc_buffer;

namespace ltc::torchscript {

struct Constant;

// Slots hold the params, then constants and results. A value is moved to its last user, so an operand that arrives there
// unshared is dead elsewhere: its memory is freed or, where the operator has an in-place twin, becomes the result.
// That of a donated input is shared with its owner until the run is committed: no node that is left looks at values and may
// refuse them, the larger donations are due, and there is memory for all that is left.
// One run at a time: slots and stack are kept between runs.
class Executable {
 public:
  // `kernels` must outlive this.
  Executable(const Program& program, host_compiler::HostKernels& kernels);
  // `bytes`: from save(). Fails with DATA_CORRUPT if they are damaged.
  Executable(std::string_view bytes, c10::Device device, host_compiler::HostKernels& kernels);
  std::string save() const;

  // An input of a run, in the host's order. It has no slot if nobody reads it, or only tiles do.
  struct Input {
    TensorSpec spec;
    std::optional<uint32_t> slot;
  };
  const std::vector<Input>& inputs() const { return inputs_; }
  size_t scalar_count() const { return scalar_count_; }
  size_t output_count() const { return outputs_.size(); }
  // The first call of a run: the values of the symbols, none if the executable is for one size. Fails with INVALID_ARGUMENT if
  // they are too many or too few.
  void bind_sizes(c10::ArrayRef<int64_t> symbols);
  const TensorSpec& output_spec(size_t index) const { return specs_[outputs_[index].slot]; }

  // In this order per run; after a failure only clear() may follow. run() fails with the node to blame. It lets go of `donated`
  // when it is committed; a failure before that, or of a run that never is, has changed none of them.
  // `keeper`: keeps forms of the value and outlives the run; null if it is given away.
  void load(const Input& input, at::Tensor value, ltc_buffer* keeper) noexcept {
    if (!input.slot) return;
    slots_[*input.slot] = std::move(value);
    if (!keepers_.empty()) keepers_[*input.slot] = keeper;
  }
  // `profiler`: told of each instruction that computes nodes; null: nobody asks.
  void run(ThreadLimit& thread_limit, const ltc_scalar* scalars, c10::ArrayRef<at::Tensor*> donated,
           const plugin::Profiler* profiler);
  at::Tensor take_output(size_t index);
  // Held by a run from its sizes to its outputs.
  std::mutex& mutex() { return mutex_; }
  void clear() noexcept;

 private:
  enum class Kind : uint8_t {
    kCall,
    kWritingCall,
    kDirect,
    kTiles,
    kNumber,
    kTensorList,
    kOptionalTensorList,
    kUnpack,
    kCheckRows,
    kForm
  };
  static constexpr uint32_t kUnwanted = UINT32_MAX;  // as a result slot

  struct Operand {
    uint32_t slot : 31;
    uint32_t last : 1;  // nobody reads the slot after this
  };
  struct Instruction {
    Kind kind = Kind::kCall;
    OperandLayout layout = OperandLayout::kAny;
    Threads threads = Threads::kOne;
    bool on_host = true;       // of kNumber
    uint32_t node = LTC_NONE;  // of the C graph
    uint32_t first_operand = 0, operand_count = 0, first_result = 0, result_count = 0;
    std::optional<c10::OperatorHandle> op, twin;
    DirectCall direct = nullptr;  // of kDirect
    uint32_t tiles = 0;           // of kTiles: which of tiles_
    int64_t dim = 0, rows = 0;    // of kCheckRows: what its operand indexes
    uint32_t form = 0;            // of kForm: which of form_keys_
    const char* note = "";        // why it is not one with what makes its operands, for profiles
  };
  struct SlotScalar {
    uint32_t slot;
    size_t index;
    ltc_dtype dtype;
  };
  class Compiler;

  // All that follows from the sizes of a run, in an executable for many. Sizes and constants have stand-ins (graph/symbols.h).
  struct Sized {
    struct Sizes {
      uint32_t index;
      std::vector<int64_t> sizes;
    };
    struct SlotConstant {
      uint32_t slot;
      c10::IValue stand_in;
    };
    struct LongInstruction {
      uint32_t index;
      Threads threads;  // in a run in which it takes long
    };
    Symbols symbols;
    std::vector<int64_t> values;              // of the symbols, now
    std::vector<Sizes> slots, inputs, tiles;  // by index of specs_, inputs_, tiles_
    std::vector<SlotConstant> constants;
    std::vector<LongInstruction> long_instructions;
  };

  // The nodes of a cluster, and their ops.
  struct TileFacts {
    std::string label;
    std::vector<uint32_t> nodes;
  };

  struct SavedInstruction;
  struct Names;
  friend void archive(plugin::Archive& io, Operand& operand);
  friend void archive(plugin::Archive& io, SavedInstruction& instruction);
  friend void archive(plugin::Archive& io, SlotScalar& scalar);
  friend void archive(plugin::Archive& io, TileFacts& facts);
  friend void archive(plugin::Archive& io, Sized& sized);
  friend void archive(plugin::Archive& io, Sized::Sizes& sizes);
  friend void archive(plugin::Archive& io, Sized::SlotConstant& constant);
  friend void archive(plugin::Archive& io, Sized::LongInstruction& instruction);
  std::vector<Constant> saved_constants() const;
  void check(size_t constants) const;
  void check(const Instruction& instruction) const;

  void prepare(host_compiler::HostKernels& kernels);  // all that follows from the instructions
  void name_forms();
  void plan_commit();
  size_t first_large_donation() const;
  double most_bytes_behind(size_t begin) const;
  bool is_long(const Instruction& instruction) const;

  void run_range(ThreadLimit& thread_limit, size_t begin, size_t end);
  void profiled_step(const Instruction& instruction);
  uint64_t operand_bytes(const Instruction& instruction) const;
  uint64_t result_bytes(const Instruction& instruction) const;
  void step(const Instruction& instruction);
  void push_operands(const Instruction& instruction);
  void call(const Instruction& instruction);
  void call_writing(const Instruction& instruction);
  void call_directly(const Instruction& instruction);
  void run_tiles(const Instruction& instruction);
  void make(const Instruction& number);
  void unpack(const Instruction& instruction);
  void check_rows(const Instruction& instruction);
  void make_form(const Instruction& instruction);
  void store_results(const Instruction& instruction);
  c10::IValue fetch(Operand operand) { return operand.last ? std::move(slots_[operand.slot]) : slots_[operand.slot]; }
  template <typename Element>
  void make_list(const Instruction& instruction);
  void check_results(const Instruction& instruction) const;
  [[noreturn]] void fail(const Instruction& instruction);

  const c10::Device device_;
  std::vector<Input> inputs_;
  size_t scalar_count_ = 0;
  std::vector<SlotScalar> slot_scalars_;        // those that have a slot
  const ltc_scalar* scalars_ = nullptr;         // of the run
  const plugin::Profiler* profiler_ = nullptr;  // of the run; null: nobody asks
  mutable std::mutex mutex_;                    // a run and save()
  std::vector<Instruction> instructions_;
  Sized sized_;
  std::vector<uint32_t> donations_;  // slots of the inputs that may be donated
  size_t committed_from_ = 0;        // behind the last instruction that may refuse a value
  size_t commit_ = 0;                // the instruction before which a run is committed
  double bytes_behind_commit_ = 0;   // that the others need at most
  std::vector<TileProgram> tiles_;
  std::shared_ptr<ProgramKernels> kernels_;  // of tiles_
  std::vector<TileFacts> tile_facts_;
  std::vector<Operand> operands_;
  std::vector<uint32_t> results_;
  std::vector<Operand> outputs_;
  std::vector<TensorSpec> specs_;       // by slot
  std::vector<bool> is_constant_;       // by slot
  std::vector<std::string> form_keys_;  // the operators with their constant operands
  std::vector<ltc_buffer*> keepers_;    // by slot, of the run; empty unless there are forms
  std::vector<c10::IValue> slots_;
  std::vector<c10::IValue> stack_;
};

}  // namespace ltc::torchscript
