// Element types that a device keeps and computes in a narrower one, while tensors go on reporting their own: double on a device
// without it, and float and double under LTC_USE_BF16=1.
//
// Host memory always has the reported type: the queue converts at each transfer, nodes that the host computes see no difference.
// Only the graphs that a plugin is given are rewritten.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "core/ir/graph.h"

namespace ltc {

namespace host {
class PluginDevice;
}

class TypeDemotion {
 public:
  enum class Bf16 : bool { kNo, kYes };

  TypeDemotion();  // every type is stored as it is
  bool operator==(const TypeDemotion&) const = default;
  // For a device with buffers of these types (a bit for each DType).
  TypeDemotion(uint64_t dtypes, Bf16 bf16);
  // From what the device says of itself, and LTC_USE_BF16. Throws Error(kUnsupported) if that wants what the device lacks, and
  // kInvalidArgument for a value other than 0 and 1.
  static TypeDemotion of(const host::PluginDevice& device);

  DType storage_dtype(DType dtype) const { return storage_[static_cast<uint32_t>(dtype)]; }
  TypeId storage_type(TypeId type) const;  // warns, once in a process, of double that is computed as single
  size_t storage_bytes(TypeId type) const;
  bool is_native(DType dtype) const { return storage_dtype(dtype) == dtype; }

  // The type that an op computes if it reads no demoted value, for example a random generator or a quotient of integers. It is
  // demoted only if the device lacks the type. A cast to storage_dtype(dtype) follows.
  DType compute_dtype(DType dtype) const { return compute_[static_cast<uint32_t>(dtype)]; }

 private:
  std::array<DType, kDTypeCount> storage_, compute_;
};

// A graph for the plugin, and for each of its nodes the one that it came from. The values of the original keep their ids.
struct DemotedGraph {
  const Graph* original;           // outlives this
  std::optional<Graph> rewritten;  // none: the demotion changes nothing
  std::vector<uint32_t> origin;
  std::vector<bool> is_cast;  // added beside it

  const Graph& graph() const { return rewritten ? *rewritten : *original; }
};
DemotedGraph demote(const Graph& graph, const TypeDemotion& demotion);

// Per node, whether the host must compute it, because demotion would change more than the precision of its results. Such nodes
// reinterpret bytes, or mix bf16 with a type that does not become bf16.
std::vector<bool> not_demotable(const Graph& graph, const TypeDemotion& demotion);

}  // namespace ltc
