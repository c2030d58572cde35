#include "core/torch/distributed/collectives.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/util/StringUtil.h>
#include <torch/library.h>

#include <numeric>
#include <tuple>

#include "core/run/device/capture.h"
#include "core/run/device/recorder.h"
#include "core/torch/distributed/groups.h"
#include "core/torch/distributed/idle_steps.h"
#include "core/torch/tensor/tensor.h"

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

// ---- kernels of the CPU: each starts a collective, whose result is complete behind wait()

Results with_token(Tensor result) { return {std::move(result), at::zeros({1}, at::kByte)}; }

std::string describe(const char* op, const std::string& how, const Tensor& input) {
  return c10::str(op, how.empty() ? "" : " ", how, " of ", input.scalar_type(), input.sizes());
}

Results all_reduce(const Tensor& input, const Token&, std::string op, int64_t number) {
  const auto group = group_of(number);
  std::vector<Tensor> tensors = {input.clone(at::MemoryFormat::Contiguous)};
  auto work = group->on_cpu().allreduce(tensors, {.reduceOp = reduce_op(op)});
  return with_token(group->begin(std::move(work), describe("all_reduce", op, input), tensors[0]));
}

Results broadcast(const Tensor& input, const Token&, int64_t root, int64_t number) {
  const auto group = group_of(number);
  std::vector<Tensor> tensors = {input.clone(at::MemoryFormat::Contiguous)};
  auto work = group->on_cpu().broadcast(tensors, {.rootRank = root});
  return with_token(group->begin(std::move(work), describe("broadcast", c10::str("from ", root), input), tensors[0]));
}

std::vector<int64_t> with_ranks(int64_t ranks, at::IntArrayRef sizes) {
  std::vector<int64_t> result = {ranks};
  result.insert(result.end(), sizes.begin(), sizes.end());
  return result;
}

// The input is cloned, also where it is contiguous: its memory may be another's before the collective is over.
Results all_gather(const Tensor& input, const Token&, int64_t ranks, int64_t number) {
  const auto group = group_of(number);
  const Tensor all = at::empty(with_ranks(ranks, input.sizes()), input.options());
  std::vector<std::vector<Tensor>> outputs = {all.unbind()};
  std::vector<Tensor> inputs = {input.clone(at::MemoryFormat::Contiguous)};
  auto work = group->on_cpu().allgather(outputs, inputs);
  return with_token(group->begin(std::move(work), describe("all_gather", "", input), all));
}

Results reduce_scatter(const Tensor& input, const Token&, std::string op, int64_t number) {
  const auto group = group_of(number);
  std::vector<Tensor> tensors = {input.clone(at::MemoryFormat::Contiguous)};
  auto work = group->on_cpu().allreduce(tensors, {.reduceOp = reduce_op(op)});  // as Gloo does it
  const Tensor own = tensors[0].select(0, group->on_cpu().getRank());
  return with_token(group->begin(std::move(work), describe("reduce_scatter", op, input), at::empty_like(own), own));
}

std::vector<int64_t> with_rows(const Tensor& input, const std::vector<int64_t>& rows) {
  std::vector<int64_t> sizes = input.sizes().vec();
  sizes[0] = std::accumulate(rows.begin(), rows.end(), int64_t{0});
  return sizes;
}

Results all_to_all(const Tensor& input, const Token&, std::vector<int64_t> to, std::vector<int64_t> from, int64_t number) {
  const auto group = group_of(number);
  Tensor own = input.clone(at::MemoryFormat::Contiguous), received = at::empty(with_rows(input, from), input.options());
  auto work = group->on_cpu().alltoall_base(received, own, from, to);
  const std::string what = c10::str("all_to_all of ", input.scalar_type());  // the rows differ from rank to rank
  return with_token(group->begin(std::move(work), what, received));
}

Tensor wait(const Tensor& pending, int64_t number) {
  group_of(number)->finish(pending);
  return pending;
}

// Starts a collective and waits for it.
template <auto start>
struct AtOnce;
template <typename... Args, Results (*start)(Args...)>
struct AtOnce<start> {
  static Results run(Args... args) {
    const Results results = start(args...);
    wait(std::get<0>(results), std::get<sizeof...(Args) - 1>(std::tie(args...)));
    return results;
  }
};

// ---- sizes

Results sized(const Tensor& input, at::IntArrayRef sizes) {
  return {at::empty(sizes, input.options()), at::empty({1}, input.options().dtype(at::kByte))};
}

Results like_input(const Tensor& input, const Token&, std::string, int64_t) { return sized(input, input.sizes()); }
Results like_input_of_root(const Tensor& input, const Token&, int64_t, int64_t) { return sized(input, input.sizes()); }
Results of_all_ranks(const Tensor& input, const Token&, int64_t ranks, int64_t) {
  return sized(input, with_ranks(ranks, input.sizes()));
}
Results of_one_rank(const Tensor& input, const Token&, std::string, int64_t) { return sized(input, input.sizes().slice(1)); }
Results of_rows(const Tensor& input, const Token&, std::vector<int64_t>, std::vector<int64_t> from, int64_t) {
  return sized(input, with_rows(input, from));
}

// For each op: itself, and the half of it that starts it.
template <auto start, auto sizes>
void add_op(torch::Library& m, const std::string& name, const std::string& arguments) {
  for (const char* half : {"", "_start"}) m.def((name + half + arguments + " -> (Tensor, Tensor)").c_str());
  m.impl(name.c_str(), torch::dispatch(c10::DispatchKey::CPU, &AtOnce<start>::run));
  m.impl((name + "_start").c_str(), torch::dispatch(c10::DispatchKey::CPU, start));
  for (const char* half : {"", "_start"}) m.impl((name + half).c_str(), torch::dispatch(c10::DispatchKey::Meta, sizes));
}

TORCH_LIBRARY(ltc_c10d, m) {
  add_op<all_reduce, like_input>(m, "all_reduce", "(Tensor input, Tensor? after, str op, int group)");
  add_op<broadcast, like_input_of_root>(m, "broadcast", "(Tensor input, Tensor? after, int root, int group)");
  add_op<all_gather, of_all_ranks>(m, "all_gather", "(Tensor input, Tensor? after, int ranks, int group)");
  add_op<reduce_scatter, of_one_rank>(m, "reduce_scatter", "(Tensor input, Tensor? after, str op, int group)");
  add_op<all_to_all, of_rows>(m, "all_to_all", "(Tensor input, Tensor? after, int[] to, int[] from_, int group)");
  m.def("wait(Tensor pending, int group) -> Tensor");
  m.impl("wait", torch::dispatch(c10::DispatchKey::CPU, wait));
  m.impl("wait", torch::dispatch(c10::DispatchKey::Meta, [](const Tensor& pending, int64_t) { return at::empty_like(pending); }));
}

// Steps run one behind the other: the token of an earlier one is not needed, and that of a failed one would fail this too.
void drop_token_of_earlier_step(Token& token) {
  if (!token) return;
  LazyStorage& storage = lazy_storage(token->unsafeGetTensorImpl());
  if (!Recorder(storage.device()).is_traced(storage)) token.reset();
}

// `what`: the collective as describe() has it, for a group of a plugin. `args`: those between the token and the group.
template <typename What, typename... Args>
Tensor call(Caller& caller, const char* name, const Tensor& input, What what, const Args&... args) {
  if (t_capture) t_capture->refuse("a collective was called, whose order among the others would be lost");
  const LocationId where = current_location();  // before any lock: it may run Python
  const std::shared_ptr<Group> group = group_of(caller.group);
  LazyDevice& device = lazy_storage(input.unsafeGetTensorImpl()).device();
  const int64_t number = group->number_on(device.queue().device(), caller.group);
  if (!is_of_plugin(number)) group->note_call(where);
  drop_token_of_earlier_step(caller.token);
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
  torch::jit::Stack stack;
  torch::jit::push(stack, input, caller.token, args..., number);
  op.callBoxed(stack);
  caller.token = stack[1].toTensor();
  if (is_of_plugin(number)) group->note_plugin_call(device, number, what(), where);
  IdleSteps::instance().note_collective(device);
  return stack[0].toTensor();
}

}  // namespace

Tensor Caller::all_reduce(const Tensor& input, const std::string& op) {
  return call(
      *this, "ltc_c10d::all_reduce", input, [&] { return describe("all_reduce", op, input); }, op);
}
Tensor Caller::broadcast(const Tensor& input, int64_t root) {
  return call(
      *this, "ltc_c10d::broadcast", input, [&] { return describe("broadcast", c10::str("from ", root), input); }, root);
}
Tensor Caller::all_gather(const Tensor& input, int64_t ranks) {
  return call(
      *this, "ltc_c10d::all_gather", input, [&] { return describe("all_gather", "", input); }, ranks);
}
Tensor Caller::reduce_scatter(const Tensor& input, const std::string& op) {
  return call(
      *this, "ltc_c10d::reduce_scatter", input, [&] { return describe("reduce_scatter", op, input); }, op);
}
Tensor Caller::all_to_all(const Tensor& input, std::vector<int64_t> to, std::vector<int64_t> from) {
  return call(
      *this, "ltc_c10d::all_to_all", input, [&] { return c10::str("all_to_all of ", input.scalar_type()); }, to, from);
}

}  // namespace ltc::collectives
