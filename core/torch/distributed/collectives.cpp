#include "core/torch/distributed/collectives.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/util/StringUtil.h>
#include <torch/library.h>

#include <numeric>
#include <tuple>

#include "core/torch/distributed/groups.h"

namespace ltc::collectives {
namespace {

using at::Tensor;
using Results = std::tuple<Tensor, Tensor>;
using Token = std::optional<Tensor>;

c10d::ReduceOp reduce_op(const std::string& name) {
  constexpr std::pair<const char*, c10d::ReduceOp::RedOpType> kOps[] = {
      {"sum", c10d::ReduceOp::SUM},   {"product", c10d::ReduceOp::PRODUCT}, {"min", c10d::ReduceOp::MIN},
      {"max", c10d::ReduceOp::MAX},   {"band", c10d::ReduceOp::BAND},       {"bor", c10d::ReduceOp::BOR},
      {"bxor", c10d::ReduceOp::BXOR},
  };
  for (const auto& [known, op] : kOps) {
    if (name == known) return op;
  }
  TORCH_CHECK(false, "no such reduction: ", name);
}

// ---- kernels of the CPU

Results with_token(Tensor result) { return {std::move(result), at::zeros({1}, at::kByte)}; }

std::string describe(const char* op, const std::string& how, const Tensor& input) {
  return c10::str(op, how.empty() ? "" : " ", how, " of ", input.scalar_type(), input.sizes());
}

Results all_reduce(const Tensor& input, const Token&, std::string op, int64_t number) {
  const auto group = group_of(number);
  std::vector<Tensor> tensors = {input.clone(at::MemoryFormat::Contiguous)};
  group->finish(*group->on_cpu().allreduce(tensors, {.reduceOp = reduce_op(op)}), describe("all_reduce", op, input));
  return with_token(tensors[0]);
}

Results broadcast(const Tensor& input, const Token&, int64_t root, int64_t number) {
  const auto group = group_of(number);
  std::vector<Tensor> tensors = {input.clone(at::MemoryFormat::Contiguous)};
  group->finish(*group->on_cpu().broadcast(tensors, {.rootRank = root}), describe("broadcast", c10::str("from ", root), input));
  return with_token(tensors[0]);
}

std::vector<int64_t> with_ranks(int64_t ranks, at::IntArrayRef sizes) {
  std::vector<int64_t> result = {ranks};
  result.insert(result.end(), sizes.begin(), sizes.end());
  return result;
}

Results all_gather(const Tensor& input, const Token&, int64_t ranks, int64_t number) {
  const auto group = group_of(number);
  Tensor own = input.contiguous(), all = at::empty(with_ranks(ranks, input.sizes()), input.options());
  std::vector<std::vector<Tensor>> outputs = {all.unbind()};
  std::vector<Tensor> inputs = {own};
  group->finish(*group->on_cpu().allgather(outputs, inputs), describe("all_gather", "", input));
  return with_token(all);
}

Results reduce_scatter(const Tensor& input, const Token&, std::string op, int64_t number) {
  const auto group = group_of(number);
  std::vector<Tensor> tensors = {input.clone(at::MemoryFormat::Contiguous)};
  const auto work = group->on_cpu().allreduce(tensors, {.reduceOp = reduce_op(op)});  // as Gloo does it
  group->finish(*work, describe("reduce_scatter", op, input));
  return with_token(tensors[0].select(0, group->on_cpu().getRank()).clone());
}

std::vector<int64_t> with_rows(const Tensor& input, const std::vector<int64_t>& rows) {
  std::vector<int64_t> sizes = input.sizes().vec();
  sizes[0] = std::accumulate(rows.begin(), rows.end(), int64_t{0});
  return sizes;
}

Results all_to_all(const Tensor& input, const Token&, std::vector<int64_t> to, std::vector<int64_t> from, int64_t number) {
  const auto group = group_of(number);
  Tensor own = input.contiguous(), received = at::empty(with_rows(input, from), input.options());
  // The rows differ from rank to rank.
  group->finish(*group->on_cpu().alltoall_base(received, own, from, to), c10::str("all_to_all of ", input.scalar_type()));
  return with_token(received);
}

// ---- sizes

Results sized(const Tensor& input, at::IntArrayRef sizes) {
  return {at::empty(sizes, input.options()), at::empty({1}, input.options().dtype(at::kByte))};
}

TORCH_LIBRARY(ltc_c10d, m) {
  m.def("all_reduce(Tensor input, Tensor? after, str op, int group) -> (Tensor, Tensor)");
  m.def("broadcast(Tensor input, Tensor? after, int root, int group) -> (Tensor, Tensor)");
  m.def("all_gather(Tensor input, Tensor? after, int ranks, int group) -> (Tensor, Tensor)");
  m.def("reduce_scatter(Tensor input, Tensor? after, str op, int group) -> (Tensor, Tensor)");
  m.def("all_to_all(Tensor input, Tensor? after, int[] to, int[] from_, int group) -> (Tensor, Tensor)");
}
TORCH_LIBRARY_IMPL(ltc_c10d, CPU, m) {
  m.impl("all_reduce", all_reduce);
  m.impl("broadcast", broadcast);
  m.impl("all_gather", all_gather);
  m.impl("reduce_scatter", reduce_scatter);
  m.impl("all_to_all", all_to_all);
}
TORCH_LIBRARY_IMPL(ltc_c10d, Meta, m) {
  m.impl("all_reduce", [](const Tensor& input, const Token&, std::string, int64_t) { return sized(input, input.sizes()); });
  m.impl("broadcast", [](const Tensor& input, const Token&, int64_t, int64_t) { return sized(input, input.sizes()); });
  m.impl("all_gather", [](const Tensor& input, const Token&, int64_t ranks, int64_t) {
    return sized(input, with_ranks(ranks, input.sizes()));
  });
  m.impl("reduce_scatter",
         [](const Tensor& input, const Token&, std::string, int64_t) { return sized(input, input.sizes().slice(1)); });
  m.impl("all_to_all", [](const Tensor& input, const Token&, std::vector<int64_t>, std::vector<int64_t> from, int64_t) {
    return sized(input, with_rows(input, from));
  });
}

template <typename... Args>
Tensor call(Caller& caller, const char* name, const Args&... args) {
  const LocationId where = current_location();  // before any lock: it may run Python
  group_of(caller.group)->note_call(where);
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
  torch::jit::Stack stack;
  torch::jit::push(stack, args...);
  op.callBoxed(stack);
  caller.token = stack[1].toTensor();
  return stack[0].toTensor();
}

}  // namespace

Tensor Caller::all_reduce(const Tensor& input, const std::string& op) {
  return call(*this, "ltc_c10d::all_reduce", input, token, op, group);
}
Tensor Caller::broadcast(const Tensor& input, int64_t root) {
  return call(*this, "ltc_c10d::broadcast", input, token, root, group);
}
Tensor Caller::all_gather(const Tensor& input, int64_t ranks) {
  return call(*this, "ltc_c10d::all_gather", input, token, ranks, group);
}
Tensor Caller::reduce_scatter(const Tensor& input, const std::string& op) {
  return call(*this, "ltc_c10d::reduce_scatter", input, token, op, group);
}
Tensor Caller::all_to_all(const Tensor& input, std::vector<int64_t> to, std::vector<int64_t> from) {
  return call(*this, "ltc_c10d::all_to_all", input, token, to, from, group);
}

}  // namespace ltc::collectives
