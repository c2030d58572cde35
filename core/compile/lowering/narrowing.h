// Element types that a device keeps and computes in a narrower one, while tensors go on reporting their own: double on a device
// without it, and float and double under LTC_USE_BF16=1.
//
// Host memory always has the reported type: the queue converts at each transfer, nodes that the host computes see no difference.
// Only the graphs that a plugin is given are rewritten.
#pragma once

#include <array>
#include <vector>

#include "core/ir/graph.h"

namespace ltc {

namespace host {
class PluginDevice;
}

class Narrowing {
 public:
  enum class Bf16 : bool { kNo, kYes };

  Narrowing();  // every type is kept as it is
  // For a device with buffers of these types (a bit for each DType).
  Narrowing(uint64_t dtypes, Bf16 bf16);
  // From what the device says of itself, and LTC_USE_BF16. Throws Error(kUnsupported) if that wants what the device lacks, and
  // kInvalidArgument for a value other than 0 and 1.
  static Narrowing of(const host::PluginDevice& device);

  DType kept(DType dtype) const { return kept_[static_cast<uint32_t>(dtype)]; }
  TypeId kept(TypeId type) const;  // warns, once in a process, of double that is computed as single
  bool keeps(DType dtype) const { return kept(dtype) == dtype; }

  // The type that an op computes if it reads no narrowed value, for example a random generator or a quotient of integers. It is
  // narrowed only if the device lacks the type. A cast to kept(dtype) follows.
  DType made(DType dtype) const { return made_[static_cast<uint32_t>(dtype)]; }

 private:
  std::array<DType, kDTypeCount> kept_, made_;
};

// A graph for the plugin, and for each of its nodes the one that it came from. The values of the original keep their ids.
struct NarrowedGraph {
  Graph graph;
  std::vector<uint32_t> origin;
  std::vector<bool> is_cast;  // added beside it
};
NarrowedGraph narrow(const Graph& graph, const Narrowing& narrowing);

// Per node, whether the host must compute it, because narrowing would change more than the precision of its results. Such nodes
// reinterpret bytes, or mix bf16 with a type that does not become bf16.
std::vector<bool> must_stay_wide(const Graph& graph, const Narrowing& narrowing);

}  // namespace ltc
