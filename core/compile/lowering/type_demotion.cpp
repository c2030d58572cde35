#include "core/compile/lowering/type_demotion.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <string_view>

#include "core/base/env.h"
#include "core/base/log.h"
#include "core/host/plugin.h"

namespace ltc {
namespace {

// Families of ops that libraries offer in single and double precision only.
constexpr std::string_view kNotInBf16[] = {
    "aten::_linalg_",
    "aten::linalg_inv",
    "aten::linalg_lu",
    "aten::linalg_cholesky",
    "aten::linalg_eig",
    "aten::linalg_ldl",
    "aten::linalg_qr",
    "aten::linalg_lstsq",
    "aten::linalg_matrix_exp",
    "aten::linalg_householder",
    "aten::triangular_solve",
    "aten::cholesky",
    "aten::lu_",
    "aten::geqrf",
    "aten::ormqr",
    "aten::_fft_",
    "aten::_cdist",
    "aten::histogram",
    "aten::_ctc_",
};

// Statistics that are float even beside bf16: by place among the inputs and outputs.
struct FloatPlaces {
  std::string_view op;
  uint32_t inputs, outputs;  // bits
};
constexpr FloatPlaces kFloatPlaces[] = {
    {"aten::_scaled_dot_product_flash_attention_for_cpu", 0, 1 << 1},
    {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", 1 << 5, 0},
};

FloatPlaces float_places(OpId op) {
  const auto* row = std::ranges::find(kFloatPlaces, op_name(op), &FloatPlaces::op);
  return row == std::end(kFloatPlaces) ? FloatPlaces{} : *row;
}

bool has_no_bf16(OpId op) {
  return std::ranges::any_of(kNotInBf16, [&](std::string_view family) { return op_name(op).starts_with(family); });
}

// Numbers that are passed by value are not kept in memory: they stay what they are.
std::vector<bool> demoted_values(const Graph& graph, const TypeDemotion& demotion) {
  std::vector<bool> demoted;
  for (const TypeId type : graph.types) demoted.push_back(!demotion.is_native(type_of(type).dtype));
  for (const Param& param : graph.params) {
    if (param.scalar) demoted[param.value] = false;
  }
  return demoted;
}

void warn_of_double(DType dtype) {
  static std::atomic<bool> warned{false};
  if (!warned.exchange(true)) log::warn("the device has no ", dtype_name(dtype), ": double precision is computed as single");
}

class Rewriter {
 public:
  Rewriter(const Graph& graph, const TypeDemotion& demotion)
      : from_(graph),
        demotion_(demotion),
        demoted_(demoted_values(graph, demotion)),
        result_{graph.types, graph.params, {}, graph.outputs} {
    result_.nodes.reserve(graph.nodes.size());
    for (ValueId value = 0; value < demoted_.size(); ++value) {
      if (demoted_[value]) result_.types[value] = demotion.storage_type(graph.types[value]);
    }
  }

  DemotedGraph run() {
    for (uint32_t i = 0; i < from_.nodes.size(); ++i) rewrite(i);
    return {&from_, std::move(result_), std::move(origin_), std::move(is_cast_)};
  }

 private:
  void rewrite(uint32_t index) {
    Node node = from_.nodes[index];
    const bool reads = std::ranges::any_of(node.inputs, [&](ValueId input) { return input != kNone && demoted_[input]; });
    const FloatPlaces floats = float_places(node.op);
    node.attrs = rewrite_attrs(node.attrs, reads);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      ValueId& input = node.inputs[i];
      if (i >= 32 || !(floats.inputs >> i & 1) || !computes_wider(input)) continue;
      const ValueId wide = result_.add_value(compute_type(input));
      add(cast(wide, std::exchange(input, wide)), index, true);
    }
    std::vector<Node> casts;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      ValueId& output = node.outputs[i];
      const bool is_float = !reads || (i < 32 && floats.outputs >> i & 1);
      if (!is_float || !computes_wider(output)) continue;
      const ValueId wide = result_.add_value(compute_type(output));
      casts.push_back(cast(std::exchange(output, wide), wide));
      casts.back().location = node.location;
    }
    add(std::move(node), index, false);
    for (Node& cast : casts) add(std::move(cast), index, true);
  }

  bool computes_wider(ValueId value) const {
    return value != kNone && demoted_[value] && compute_type(value) != result_.types[value];
  }

  AttrsId rewrite_attrs(AttrsId id, bool reads) const {
    if (std::ranges::count(attrs_of(id), AttrKind::kDType, &Attr::kind) == 0) return id;
    AttrList attrs = attrs_of(id);
    bool changed = false;
    for (Attr& attr : attrs) {
      if (attr.kind != AttrKind::kDType) continue;
      const auto dtype = static_cast<DType>(attr.ints[0]);
      const DType demoted = reads ? demotion_.storage_dtype(dtype) : demotion_.compute_dtype(dtype);
      attr.ints[0] = static_cast<int64_t>(demoted);
      changed |= demoted != dtype;
    }
    return changed ? intern_attrs(attrs) : id;
  }

  TypeId compute_type(ValueId value) const {
    const Type& type = from_.type(value);
    return intern_type(demotion_.compute_dtype(type.dtype), type.sizes, type.strides);
  }

  Node cast(ValueId to, ValueId from) const {
    static const OpId op = intern_op("aten::_to_copy");
    return {op, intern_attrs({Attr::of_dtype("dtype", result_.type(to).dtype)}), {from}, {to}};
  }

  void add(Node node, uint32_t origin, bool is_cast) {
    result_.nodes.push_back(std::move(node));
    origin_.push_back(origin);
    is_cast_.push_back(is_cast);
  }

  const Graph& from_;
  const TypeDemotion& demotion_;
  std::vector<bool> demoted_;  // by value of the original
  Graph result_;
  std::vector<uint32_t> origin_;  // by node of the result
  std::vector<bool> is_cast_;     // likewise
};

}  // namespace

TypeDemotion::TypeDemotion() {
  for (uint32_t i = 0; i < kDTypeCount; ++i) storage_[i] = compute_[i] = static_cast<DType>(i);
}

TypeDemotion::TypeDemotion(uint64_t dtypes, Bf16 bf16) : TypeDemotion() {
  const auto has = [&](DType dtype) { return (dtypes >> static_cast<uint32_t>(dtype) & 1) != 0; };
  const auto replace = [&](DType wide, DType narrow) {
    if (has(narrow) && !has(wide)) storage_[static_cast<uint32_t>(wide)] = narrow;
  };
  replace(DType::kF64, DType::kF32);
  replace(DType::kC128, DType::kC64);
  compute_ = storage_;
  if (bf16 == Bf16::kNo) return;
  compute_[static_cast<uint32_t>(DType::kF64)] = DType::kF32;
  for (const DType wide : {DType::kF32, DType::kF64}) storage_[static_cast<uint32_t>(wide)] = DType::kBF16;
}

TypeDemotion TypeDemotion::of(const host::PluginDevice& device) {
  const bool bf16 = env::is_set(env::kUseBf16);
  if (bf16 && !device.supports(LTC_BF16)) {
    fail(Code::kUnsupported, env::kUseBf16.name, "=1 needs a device with bf16; '", device.info().name, "' has none");
  }
  return {device.info().dtypes, bf16 ? Bf16::kYes : Bf16::kNo};
}

TypeId TypeDemotion::storage_type(TypeId id) const {
  const Type& type = type_of(id);
  if (is_native(type.dtype)) return id;
  if (storage_dtype(type.dtype) != DType::kBF16) warn_of_double(type.dtype);
  return intern_type(storage_dtype(type.dtype), type.sizes, type.strides);
}

size_t TypeDemotion::storage_bytes(TypeId id) const {
  const Type& type = type_of(id);
  return static_cast<size_t>(type.element_count) * dtype_size_bytes(storage_dtype(type.dtype));
}

DemotedGraph demote(const Graph& graph, const TypeDemotion& demotion) {
  if (demotion != TypeDemotion()) return Rewriter(graph, demotion).run();
  DemotedGraph same{&graph, std::nullopt, std::vector<uint32_t>(graph.nodes.size()),
                    std::vector<bool>(graph.nodes.size(), false)};
  std::iota(same.origin.begin(), same.origin.end(), 0);
  return same;
}

std::vector<bool> not_demotable(const Graph& graph, const TypeDemotion& demotion) {
  static const OpId bitcast = intern_op("aten::view.dtype");
  const bool bf16 = demotion.storage_dtype(DType::kF32) == DType::kBF16;
  const std::vector<bool> demoted = demoted_values(graph, demotion);
  const auto any = [](const std::vector<ValueId>& values, auto&& holds) {
    return std::ranges::any_of(values, [&](ValueId value) { return value != kNone && holds(value); });
  };
  const auto is_demoted = [&](ValueId value) { return demoted[value]; };
  // Together with bf16 these are computed as float, complex or half, whatever the graph says.
  const auto is_stranger = [&](ValueId value) {
    return bf16 && (graph.type(value).dtype == DType::kF16 || is_complex(graph.type(value).dtype));
  };
  std::vector<bool> result;
  for (const Node& node : graph.nodes) {
    const bool reads = any(node.inputs, is_demoted);
    const bool mixes = reads && (any(node.inputs, is_stranger) || any(node.outputs, [&](ValueId output) {
                                   return is_complex(graph.type(output).dtype) && is_stranger(output);
                                 }));
    const bool unknown = reads && bf16 && has_no_bf16(node.op);
    result.push_back(mixes || unknown || (node.op == bitcast && (reads || any(node.outputs, is_demoted))));
  }
  return result;
}

}  // namespace ltc
