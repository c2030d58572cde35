// The op table: what the core knows of single ops. The rows are in op_table.inc.
#pragma once

#include <span>
#include <string_view>

#include "core/base/api.h"
#include "core/ir/op.h"

namespace ltc {

enum class Tier : uint8_t {
  kMinimal,  // every compiling plugin lowers it
  kDerived,  // a plugin may claim it; else rules take it apart
  kWhole,    // a plugin may claim it; else the host runs it: there is no rule
  kHost,     // never traced
};

enum OpFlags : uint32_t {
  kKeepWhole = 1,     // recorded as one node although PyTorch would take it apart before it reaches the device
  kCpuIndices = 2,    // index tensors may be on the CPU, as PyTorch allows for every device
  kTraceTagged = 4,   // recorded although PyTorch tags it as random or of sizes that depend on values: its kernel sees to that
  kZeroIsStatic = 8,  // a number of it that is zero is part of the graph: of parts that a computation may leave out
};

struct OpRow {
  uint32_t id;
  std::string_view name;    // "aten::add.Tensor"
  std::string_view schema;  // PyTorch's
  Tier tier;
  uint32_t flags;
  std::string_view static_args;  // separated by commas

  bool is_static(std::string_view arg) const;
};

LTC_API std::span<const OpRow> op_rows();
// The reason why an op stays on the host. It is apart from the rows, so that a program without a call of it has none of the
// texts.
LTC_API std::string_view op_doc(const OpRow& row);
const OpRow* find_op_row(std::string_view name);  // null if the op has none

// The highest id of the ABI's version that hosts and plugins agree on, 1.0; sdk/manifest/released.toml.
inline constexpr uint32_t kLastReleasedOp = 526;

uint32_t stable_op_id(OpId op);  // for the C ABI; 0 if the op has no row, or one newer than that version

}  // namespace ltc
