// From values of the graph to instructions: an element of a value, by computing what stands before it in place.
#pragma once
#include <functional>
#include <map>
#include <tuple>

#include "kernels/graph/graph.h"
#include "kernels/graph/ir.h"
#include "kernels/graph/options.h"

namespace ltc::kernels {

// Where kernels report a bad index: a word in memory, which becomes the code of the launch plus the number of the check in its
// kernel. kNone: nothing is checked.
struct Faults {
  ValueId word = kNone, code = kNone;
};

class Emitter {
 public:
  // is_stored: whether the value is read from a buffer; what is not, is computed here.
  Emitter(const Graph& graph, Kernel& kernel, Builder& builder, std::function<bool(ValueId)> is_stored, Abilities abilities,
          Faults faults)
      : graph_(graph),
        kernel_(kernel),
        builder_(builder),
        is_stored_(std::move(is_stored)),
        abilities_(abilities),
        faults_(faults) {}

  // The element of the value at these coordinates; 0 or garbage where `guard` does not hold, but never a read outside.
  Ref at(ValueId value, const Coords& coords, Ref guard = kNoRef);
  // An element of a buffer that holds `dtype`, by its position.
  Ref load(ValueId value, ltc_dtype dtype, const Index& position, Ref guard);
  void store(ValueId value, const Index& position, Ref element, Ref guard = kNoRef);

  Ref cast(Ref value, ltc_dtype to);
  // A row's formula, or another, for elements of a dtype.
  Ref apply(std::string_view formula, ltc_dtype of, ltc_dtype result, std::vector<Ref> args);
  // The dtype in which elements of one are added up.
  ltc_dtype sum_dtype(ltc_dtype dtype) const;
  Ref inside(const Index& index, int64_t extent, Ref also = kNoRef);
  // Whether an element of an index is in [0, size).
  Ref names_place(Ref element, int64_t size);
  // Where that does not hold for an element of the node's index, the run fails, unless the guard does not hold.
  void check_index(const Node& node, Ref holds, int64_t size, Ref guard);

 private:
  ltc_dtype widest_float() const { return abilities_.fp64 ? ltc_dtype{LTC_F64} : ltc_dtype{LTC_F32}; }
  Ref compute(ValueId value, const Coords& coords, Ref guard);
  Ref moved(const Node& node, const Coords& coords, Ref guard);
  Ref joined(const Node& node, const Coords& coords, Ref guard);
  Ref bits(const Node& node, const Coords& coords, Ref guard);
  Ref number(const Node& node, std::string_view attr, size_t& operand);
  Ref made(const Node& node, const Coords& coords);
  Ref folded(const Node& node, const Coords& coords);
  Ref position_of_largest(const Node& node, const Coords& coords);
  BlockId block_of(const Coords& coords);

  const Graph& graph_;
  Kernel& kernel_;
  Builder& builder_;
  std::function<bool(ValueId)> is_stored_;
  Abilities abilities_;
  Faults faults_;
  std::map<std::tuple<ValueId, Coords, Ref>, Ref> known_;
};

}  // namespace ltc::kernels
