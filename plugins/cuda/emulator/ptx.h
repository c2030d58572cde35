// A module of PTX, decoded: what the parser makes and threads run.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ltc::emulator {

struct Thread;
struct Instruction;
using Handler = void (*)(Thread&, const Instruction&);

// An error of a kernel, of the text of a module or of a call, as the driver answers it.
struct Fault {
  CUresult code;
  std::string text;
};

// Registers are 64 bits wide each. Constants and special registers have slots as well, so that all operands are alike.
struct Instruction {
  static constexpr size_t kMostSlots = 14;

  Handler handler = nullptr;
  uint16_t guard = 0;                  // slot of the predicate
  bool negated = false, pair = false;  // `pair`: the first result is of the form a|b
  uint16_t slots[kMostSlots] = {};
  int32_t offset = 0;                 // of the address
  uint32_t target = 0;                // of a branch: index of an instruction; of a call: index in `calls`
  const std::string* name = nullptr;  // in the table
};

enum SpecialSlot : uint16_t {
  kTrue,  // guard of an instruction without one
  kSink,  // takes what nobody reads
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneId,
  kWarpId,
  kLanesEqual,
  kLanesBelow,
  kLanesUpTo,
  kLanesAbove,
  kLanesFrom,
  kSpecialSlots
};

// A formal parameter, or one of a call: a place among the parameters of the function's frame.
struct Param {
  std::string name;
  uint32_t offset = 0, bytes = 0;
};

struct Function;
struct Call {
  std::string name;
  Function* callee = nullptr;
  std::vector<Param> arguments, results;  // of the caller's frame
};

struct Function {
  std::string name;
  bool is_entry = false, has_body = false;
  std::vector<Param> params, results;
  uint32_t param_bytes = 0;  // formal ones first
  uint32_t local_bytes = 0;
  uint64_t most_threads = 1024;     // of a block
  std::vector<uint64_t> registers;  // initial values: poison and constants
  std::vector<Instruction> code;
  std::vector<Call> calls;
};

// A variable of the module in global or constant memory.
struct Variable {
  std::string name;
  std::vector<std::byte> bytes;
  CUdeviceptr address = 0;
};

struct Module {
  std::map<std::string, std::unique_ptr<Function>> functions;
  std::map<std::string, Variable> variables;
  uint32_t shared_bytes = 0;
};

// Gives a variable of the module its memory; called while a module is parsed.
using Placement = CUdeviceptr (*)(const Variable& variable, void* context);

// Throws Fault with CUDA_ERROR_INVALID_PTX; the text names the kernel and what is not known.
std::unique_ptr<Module> parse(const std::string& text, Placement place, void* context);

inline constexpr uint32_t kMostSharedBytes = 48 << 10;  // of a block that asks for no more

// Windows of generic addresses. Shared and local memory have addresses of their own, which begin at 0.
inline constexpr uint64_t kSharedWindow = uint64_t{0x7001} << 48, kLocalWindow = uint64_t{0x7002} << 48,
                          kWindowBytes = uint64_t{1} << 32;

}  // namespace ltc::emulator
