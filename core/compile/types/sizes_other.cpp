// Reductions, normalization, losses, new values, and steps of optimizers.
#include <algorithm>
#include <cmath>

#include "core/compile/types/rules.h"

namespace ltc::types {
namespace {

using Shapes = std::vector<Dims>;

const Dims& first_sizes(const Arguments& call) { return call.first()->sizes; }

// By dim: whether `dim` or `dims` names it; none if one is out of range. No dims, or an empty list, are all.
std::optional<std::vector<bool>> named_dims(const Arguments& call, size_t rank) {
  const Dims dims = call.given("dims") ? call.ints("dims") : call.ints("dim");
  std::vector<bool> named(std::max<size_t>(rank, 1), dims.empty());
  for (const int64_t number : dims) {
    const auto dim = dim_of(number, rank);
    if (!dim) return std::nullopt;
    named[*dim] = true;
  }
  return named;
}

bool dims(const Arguments& call, Shapes& /*shapes*/) { return named_dims(call, first_sizes(call).size()).has_value(); }

bool reduce(const Arguments& call, Shapes& shapes) {
  const Dims& from = first_sizes(call);
  const auto reduced = named_dims(call, from.size());
  if (!reduced) return false;
  const bool keeps = call.flag("keepdim");
  Dims sizes;
  for (size_t i = 0; i < from.size(); ++i) {
    if (!(*reduced)[i] || keeps) sizes.push_back((*reduced)[i] ? 1 : from[i]);
  }
  if (call.constant("k")) {
    const auto dim = dim_of(call.integer("dim"), from.size());
    const int64_t k = call.integer("k");
    if (!dim || k < 1 || k > (from.empty() ? 1 : from[*dim])) return false;
  }
  return shapes.push_back(sizes), true;
}

bool loss(const Arguments& call, Shapes& shapes) {
  Dims sizes;
  for (const Arguments::Operands& operand : call.operands()) {
    const Type* type = operand.is_number ? nullptr : call.tensor(operand.name);
    if (type && !broadcast_onto(sizes, type->sizes)) return false;
  }
  shapes.push_back(call.integer("reduction") == 0 ? sizes : Dims());
  return true;
}

bool glu(const Arguments& call, Shapes& shapes) {
  Dims sizes = call.sizes("self");
  const auto dim = dim_of(call.integer("dim"), sizes.size());
  if (!dim || sizes.empty() || sizes[*dim] % 2) return false;
  sizes[*dim] /= 2;
  return shapes.push_back(sizes), true;
}

bool cross(const Arguments& call, Shapes& /*shapes*/) {
  const Dims &a = call.sizes("self"), &b = call.sizes("other");
  const auto dim = dim_of(call.integer("dim"), a.size());
  return dim && a.size() == b.size() && !a.empty() && a[*dim] == 3 && b[*dim] == 3;
}

// Real values have half a spectrum.
bool fft(const Arguments& call, Shapes& shapes) {
  Dims sizes = call.sizes("self");
  const auto named = named_dims(call, sizes.size());
  if (!named || sizes.empty() || call.ints("dim").empty()) return false;
  int64_t& last = sizes[*dim_of(call.ints("dim").back(), sizes.size())];
  if (call.row().name == "aten::_fft_r2c") {
    last = call.flag("onesided") ? last / 2 + 1 : last;
  } else {
    const int64_t wanted = call.integer("last_dim_size");
    if (!is_complex(call.tensor("self")->dtype) || wanted < 1 || wanted / 2 + 1 > last) return false;
    last = wanted;
  }
  return shapes.push_back(sizes), true;
}

// Several heads of queries may share one of keys.
bool attention(const Arguments& call, Shapes& /*shapes*/) {
  const Dims &query = call.sizes("query"), &key = call.sizes("key");
  return query.size() == 4 && key.size() == 4 && (query[1] == key[1] || (key[1] > 0 && query[1] % key[1] == 0));
}

// ---- normalization

bool group_norm(const Arguments& call, Shapes& /*shapes*/) {
  const Dims& sizes = call.sizes("input");
  const int64_t groups = call.integer("group");
  if (sizes.size() < 2 || groups < 1 || sizes[1] % groups != 0) return false;
  int64_t space = 1;
  for (size_t i = 2; i < sizes.size(); ++i) {
    if (__builtin_mul_overflow(space, sizes[i], &space)) return false;
  }
  return sizes[0] == call.integer("N") && sizes[1] == call.integer("C") && space == call.integer("HxW");
}

// Statistics of the batch, which there are in training only.
bool batch_norm(const Arguments& call, Shapes& shapes) {
  const Dims& sizes = call.sizes("input");
  if (sizes.size() < 2) return false;
  shapes.push_back({call.flag("training") ? sizes[1] : 0});
  return call.flag("training") || call.row().name.ends_with("no_stats") ||
         (call.tensor("running_mean") && call.tensor("running_var"));
}

bool batch_norm_backward(const Arguments& call, Shapes& shapes) {
  const Dims& sizes = call.sizes("input");
  if (sizes.size() < 2) return false;
  const bool train = call.flag("train");
  const Type *mean = call.tensor("save_mean"), *deviation = call.tensor("save_invstd");
  if (train ? !mean || !deviation : !call.tensor("running_mean") || !call.tensor("running_var")) return false;
  const auto saved = [&](const Type* type) { return train || !type || type->sizes != Dims{0} ? Dims{sizes[1]} : Dims{0}; };
  if (mean) shapes.push_back(saved(mean));
  if (deviation) shapes.push_back(saved(deviation));
  return true;
}

// One factor for each place of a dim.
bool weight_norm(const Arguments& call, Shapes& /*shapes*/) {
  const bool backward = call.row().name.ends_with("backward");
  const Dims &v = call.sizes(backward ? "saved_v" : "v"), &g = call.sizes(backward ? "saved_g" : "g");
  const auto dim = dim_of(call.integer("dim"), v.size());
  if (!dim || v.size() != g.size()) return false;
  for (size_t i = 0; i < v.size(); ++i) {
    if (g[i] != (i == *dim ? v[i] : 1)) return false;
  }
  return true;
}

// ---- new values

bool range(const Arguments& call, Shapes& shapes) {
  double numbers[3] = {0, 0, 1};
  constexpr std::string_view kNames[] = {"start", "end", "step"};
  for (size_t i = 0; i < 3; ++i) {
    const Attr* attr = call.constant(kNames[i]);
    if (!attr && i == 2 && call.tensors("step").empty()) continue;
    if (!attr || (attr->ints.empty() && attr->floats.empty())) return false;
    numbers[i] = attr->kind == AttrKind::kFloat ? attr->floats[0] : static_cast<double>(attr->ints[0]);
  }
  const double count = std::ceil((numbers[1] - numbers[0]) / numbers[2]);
  if (!(count >= 0 && count < 1e15)) return false;
  shapes.push_back({static_cast<int64_t>(count)});
  return true;
}

// ---- lists

// As many elements in each list as in the first, each as large as the one there; only counts of steps are numbers. The results
// are the lists that the op writes, in order.
bool optimizer(const Arguments& call, Shapes& /*shapes*/) {
  const auto params = call.tensors("self");
  size_t result = 0;
  for (const OpArg& arg : op_args(call.row())) {
    if (arg.kind == OpArgKind::kTensor) {
      const Type* type = call.tensor(arg.name);
      if (type && type->element_count != 1) return false;
      continue;
    }
    if (arg.kind != OpArgKind::kTensorList) continue;
    const auto list = call.tensors(arg.name);
    if (!list.empty() && list.size() != params.size()) return false;
    for (size_t i = 0; i < list.size(); ++i) {
      const Type& type = call.graph().type(list[i]);
      const bool fits = arg.name == "state_steps" ? type.element_count == 1 && type.dtype == DType::kF32
                                                  : same_shape(type, call.graph().type(params[i]));
      if (!fits) return false;
      if (arg.type.find('!') == arg.type.npos) continue;
      if (result == call.node().outputs.size()) return false;
      const ValueId output = call.node().outputs[result++];
      if (output != kNone && !same_shape(call.graph().type(output), type)) return false;
    }
  }
  return result == call.node().outputs.size();
}

}  // namespace

std::vector<NamedFunction> other_functions() {
  return {{"dims", dims},
          {"reduce", reduce},
          {"loss", loss},
          {"glu", glu},
          {"cross", cross},
          {"attention", attention},
          {"fft", fft},
          {"group_norm", group_norm},
          {"batch_norm", batch_norm},
          {"batch_norm_backward", batch_norm_backward},
          {"weight_norm", weight_norm},
          {"range", range},
          {"optimizer", optimizer}};
}

}  // namespace ltc::types
