#include "core/torch/distributed/backend.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <tuple>

#include "core/report/metrics.h"
#include "core/run/device/device_table.h"
#include "core/torch/distributed/collectives.h"
#include "core/torch/distributed/groups.h"
#include "core/torch/distributed/work.h"

namespace ltc {
namespace {

using at::Tensor;
using c10d::OpType;
using collectives::Message;
using collectives::RecordedWork;
using collectives::Tensors;
using collectives::Together;
using collectives::WorkPtr;
using TensorLists = std::vector<Tensors>;

const char* name_of(const c10d::ReduceOp& op) {
  switch (op.op_) {
    case c10d::ReduceOp::SUM:
    case c10d::ReduceOp::AVG:
    case c10d::ReduceOp::PREMUL_SUM: return "sum";
    case c10d::ReduceOp::PRODUCT: return "product";
    case c10d::ReduceOp::MIN: return "min";
    case c10d::ReduceOp::MAX: return "max";
    case c10d::ReduceOp::BAND: return "band";
    case c10d::ReduceOp::BOR: return "bor";
    case c10d::ReduceOp::BXOR: return "bxor";
    default: TORCH_CHECK(false, "the process group of ltc has no such reduction: ", static_cast<int>(op.op_));
  }
}

const Tensor& only(const Tensors& tensors, const char* what) {
  TORCH_CHECK(tensors.size() == 1, what, " of the process group of ltc takes one tensor of each rank, not ", tensors.size());
  return tensors[0];
}

// Recorded work of this device runs first, and is over.
void run_recorded() {
  DeviceTable::instance().for_each([](LazyDevice& device) {
    device.sync(metrics::kCollective);
    device.wait();
  });
}

class ProcessGroupLtc : public c10d::Backend {
 public:
  ProcessGroupLtc(c10::intrusive_ptr<c10d::Backend> on_cpu, c10::intrusive_ptr<c10d::Store> store, std::string name,
                  std::chrono::milliseconds timeout)
      : Backend(on_cpu->getRank(), on_cpu->getSize()),
        on_cpu_(on_cpu),
        name_(name),
        caller_{collectives::add_group(
            std::make_shared<collectives::Group>(std::move(on_cpu), std::move(store), std::move(name), timeout))} {}
  ~ProcessGroupLtc() override { collectives::remove_group(caller_.group); }

  const std::string getBackendName() const override { return "ltc"; }
  void abort() override {
    collectives::group_of(caller_.group)->abort();
    on_cpu_->abort();
  }
  void setTimeout(std::chrono::milliseconds timeout) override { on_cpu_->setTimeout(timeout); }
  void shutdown() override { run_recorded(); }  // the others wait for what this rank has called
  void setSequenceNumberForGroup() override { on_cpu_->setSequenceNumberForGroup(); }
  uint64_t getSequenceNumberForGroup() override { return on_cpu_->getSequenceNumberForGroup(); }

  // A group of some of its ranks, made by these alone; null for the others.
  bool supportsSplitting() const override { return true; }
  c10::intrusive_ptr<Options> getBackendOptions() override {
    return c10::make_intrusive<Options>("ltc", on_cpu_->getBackendOptions()->timeout);
  }
  c10::intrusive_ptr<Backend> split(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
                                    const c10::intrusive_ptr<Options>& options) override {
    const auto place = std::ranges::find(ranks, getRank());
    if (place == ranks.end()) return nullptr;
    auto notes = c10::make_intrusive<c10d::PrefixStore>("ltc", store);
    collectives::leave_name(*notes, static_cast<int>(place - ranks.begin()), name_);
    auto on_cpu = split_on_cpu(store, ranks, options->timeout);
    return c10::make_intrusive<ProcessGroupLtc>(std::move(on_cpu), std::move(notes), name_, options->timeout);
  }

  // Each collective is recorded by itself. Sends and receives are waited for together.
  bool supportsCoalescing() const override { return true; }
  void startCoalescing() override { together_.emplace(); }
  WorkPtr endCoalescing() override {
    return c10::make_intrusive<Together>(std::exchange(together_, std::nullopt).value_or(std::vector<WorkPtr>()));
  }

  // ---- reductions

  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return record_all(OpType::ALLREDUCE, tensors, [&](Tensor& tensor) { tensor.copy_(all_reduce(tensor, options.reduceOp)); });
  }
  // One collective of all values, as Gloo does it.
  WorkPtr allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override {
    for (const Tensor& tensor : tensors) {
      if (tensor.scalar_type() != tensors[0].scalar_type()) return allreduce(tensors, options);
    }
    if (tensors.size() < 2) return allreduce(tensors, options);
    return record(OpType::ALLREDUCE_COALESCED, tensors, tensors,
                  [&] { unflatten(all_reduce(flatten(tensors), options.reduceOp), tensors); });
  }
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    return record_all(OpType::REDUCE, tensors, [&](Tensor& tensor) {
      const Tensor sum = all_reduce(tensor, options.reduceOp);
      if (options.rootRank == getRank()) tensor.copy_(sum);
    });
  }
  WorkPtr reduce_scatter(Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& options) override {
    return record_all(OpType::REDUCE_SCATTER, outputs, [&, next = size_t{0}](Tensor& output) mutable {
      Tensors& parts = inputs.at(next++);
      TORCH_CHECK(parts.size() == static_cast<size_t>(getSize()), "reduce_scatter takes ", getSize(), " tensors, not ",
                  parts.size());
      for (int rank = 0; rank < getSize(); ++rank) {
        const Tensor sum = all_reduce(parts[static_cast<size_t>(rank)], options.reduceOp);
        if (rank == getRank()) output.copy_(sum);
      }
    });
  }
  WorkPtr _reduce_scatter_base(Tensor& output, Tensor& input, const c10d::ReduceScatterOptions& options) override {
    Tensors outputs = {output};
    return record_all(OpType::_REDUCE_SCATTER_BASE, outputs,
                      [&](Tensor& out) { out.copy_(scattered(input, out, options.reduceOp)); });
  }
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) override {
    return record_all(OpType::REDUCE_SCATTER_TENSOR_COALESCED, outputs, [&, next = size_t{0}](Tensor& out) mutable {
      out.copy_(scattered(inputs.at(next++), out, options.reduceOp));
    });
  }

  // ---- copies to others

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    return record_all(OpType::BROADCAST, tensors,
                      [&](Tensor& tensor) { tensor.copy_(caller_.broadcast(tensor, options.rootRank)); });
  }
  WorkPtr allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions&) override {
    return record_all(OpType::ALLGATHER, inputs,
                      [&, next = size_t{0}](Tensor& input) mutable { give(gathered(input), outputs.at(next++)); });
  }
  WorkPtr _allgather_base(Tensor& output, Tensor& input, const c10d::AllgatherOptions&) override {
    Tensors outputs = {output};
    return record_all(OpType::_ALLGATHER_BASE, outputs, [&](Tensor& out) { out.copy_(gathered(input).view(out.sizes())); });
  }
  WorkPtr allgather_coalesced(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions&) override {
    return record_all(OpType::ALLGATHER_COALESCED, inputs, [&, next = size_t{0}](Tensor& input) mutable {
      const Tensor all = gathered(input);
      for (int rank = 0; rank < getSize(); ++rank) outputs.at(static_cast<size_t>(rank)).at(next).copy_(all[rank]);
      ++next;
    });
  }
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions&) override {
    return record_all(OpType::ALLGATHER_COALESCED, outputs,
                      [&, next = size_t{0}](Tensor& out) mutable { out.copy_(gathered(inputs.at(next++)).view(out.sizes())); });
  }
  WorkPtr gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& options) override {
    return record_all(OpType::GATHER, inputs, [&](Tensor& input) {
      const Tensor all = gathered(input);
      if (options.rootRank == getRank()) give(all, outputs.at(0));
    });
  }
  WorkPtr scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& options) override {
    return record_all(OpType::SCATTER, outputs, [&](Tensor& output) {
      const bool is_root = options.rootRank == getRank();
      const Tensor parts = is_root ? at::stack(inputs.at(0)) : at::zeros({getSize(), output.numel()}, output.options());
      output.copy_(
          caller_.broadcast(parts.reshape({getSize(), output.numel()}), options.rootRank)[getRank()].view(output.sizes()));
    });
  }
  WorkPtr alltoall_base(Tensor& output, Tensor& input, std::vector<int64_t>& from, std::vector<int64_t>& to,
                        const c10d::AllToAllOptions&) override {
    Tensors outputs = {output};
    return record_all(OpType::ALLTOALL_BASE, outputs, [&](Tensor& out) {
      out.copy_(caller_.all_to_all(input, to.empty() ? even_rows(input) : to, from.empty() ? even_rows(out) : from));
    });
  }
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions&) override {
    return record(OpType::ALLTOALL, inputs, outputs,
                  [&] { unflatten(caller_.all_to_all(flatten(inputs), counts(inputs), counts(outputs)), outputs); });
  }

  // ---- what acts at once

  WorkPtr send(Tensors& tensors, int to, int tag) override {
    Tensors on_cpu = {only(tensors, "send").contiguous().cpu()};
    WorkPtr work = on_cpu_->send(on_cpu, to, tag);
    return begun(c10::make_intrusive<Message>(std::move(work), on_cpu[0]));
  }
  WorkPtr recv(Tensors& tensors, int from, int tag) override {
    return receive(tensors, [&](Tensors& on_cpu) { return on_cpu_->recv(on_cpu, from, tag); });
  }
  WorkPtr recvAnysource(Tensors& tensors, int tag) override {
    return receive(tensors, [&](Tensors& on_cpu) { return on_cpu_->recvAnysource(on_cpu, tag); });
  }
  WorkPtr barrier(const c10d::BarrierOptions& options) override {
    run_recorded();
    auto on_cpu = options;
    on_cpu.device_ids.clear();
    on_cpu.device.reset();
    on_cpu_->barrier(on_cpu)->wait();
    return record(OpType::BARRIER, {}, {}, [] {});
  }
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override {
    run_recorded();
    on_cpu_->monitoredBarrier(options, wait_all_ranks);
  }

 private:
  // Gloo takes its own kind of options, reads the ranks of the whole from it, and keeps what it is given.
  c10::intrusive_ptr<c10d::Backend> split_on_cpu(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
                                                 std::chrono::milliseconds timeout) {
    const auto options = on_cpu_->getBackendOptions();
    const auto before = std::pair(options->global_ranks_in_group, options->timeout);
    if (options->global_ranks_in_group.empty()) {
      options->global_ranks_in_group.resize(static_cast<size_t>(getSize()));
      std::iota(options->global_ranks_in_group.begin(), options->global_ranks_in_group.end(), uint64_t{0});
    }
    auto part = on_cpu_->split(store, ranks, options);
    part->setTimeout(timeout);
    std::tie(options->global_ranks_in_group, options->timeout) = before;
    return part;
  }

  template <typename Record>
  WorkPtr record(OpType type, const Tensors& inputs, const Tensors& results, Record record) {
    at::NoGradGuard no_grad;
    const std::lock_guard lock(mutex_);
    auto work = c10::make_intrusive<RecordedWork>(type, inputs);
    record();
    work->recorded(results);
    return work;
  }
  template <typename Record>
  WorkPtr record_all(OpType type, Tensors& tensors, Record record_one) {
    return record(type, tensors, tensors, [&] {
      for (Tensor& tensor : tensors) record_one(tensor);
    });
  }

  Tensor all_reduce(const Tensor& input, const c10d::ReduceOp& op) {
    return after(caller_.all_reduce(before(input, op), name_of(op)), op);
  }
  Tensor scattered(const Tensor& input, const Tensor& output, const c10d::ReduceOp& op) {
    TORCH_CHECK(input.numel() == output.numel() * getSize(), "reduce_scatter: an input of ", input.numel(), " elements for ",
                getSize(), " outputs of ", output.numel());
    const Tensor parts = input.reshape({getSize(), output.numel()});
    return after(caller_.reduce_scatter(before(parts, op), name_of(op)), op).view(output.sizes());
  }
  Tensor gathered(const Tensor& input) { return caller_.all_gather(input, getSize()); }

  static Tensor before(const Tensor& input, const c10d::ReduceOp& op) {
    if (op.op_ != c10d::ReduceOp::PREMUL_SUM) return input;
    const auto& factor = static_cast<const c10d::PreMulSumSupplement&>(*op.supplement_);
    return factor.tensor_factor.defined() ? input * factor.tensor_factor : input * factor.double_factor;
  }
  Tensor after(const Tensor& result, const c10d::ReduceOp& op) const {
    if (op.op_ != c10d::ReduceOp::AVG) return result;
    return at::isIntegralType(result.scalar_type(), true) ? result.div(getSize(), "trunc") : result.div(getSize());
  }
  static std::vector<int64_t> counts(const Tensors& tensors) {
    std::vector<int64_t> elements;
    for (const Tensor& tensor : tensors) elements.push_back(tensor.numel());
    return elements;
  }
  static Tensor flatten(const Tensors& tensors) {
    Tensors flat;
    for (const Tensor& tensor : tensors) flat.push_back(tensor.reshape({-1}));
    return at::cat(flat);
  }
  static void unflatten(const Tensor& all, Tensors& outputs) {
    const Tensors parts = all.split_with_sizes(counts(outputs));
    for (size_t i = 0; i < outputs.size(); ++i) outputs[i].copy_(parts[i].view(outputs[i].sizes()));
  }
  static void give(const Tensor& all, Tensors& outputs) {
    for (size_t rank = 0; rank < outputs.size(); ++rank)
      outputs[rank].copy_(all[static_cast<int64_t>(rank)].view(outputs[rank].sizes()));
  }
  std::vector<int64_t> even_rows(const Tensor& tensor) const {
    TORCH_CHECK(tensor.dim() > 0 && tensor.size(0) % getSize() == 0, "all_to_all: a first dim that ", getSize(),
                " ranks do not divide, of sizes ", tensor.sizes());
    return std::vector<int64_t>(static_cast<size_t>(getSize()), tensor.size(0) / getSize());
  }

  template <typename Receive>
  WorkPtr receive(Tensors& tensors, Receive start) {
    const Tensor& tensor = only(tensors, "recv");
    Tensors on_cpu = {at::empty(tensor.sizes(), tensor.options().device(at::kCPU))};
    WorkPtr work = start(on_cpu);
    return begun(c10::make_intrusive<Message>(std::move(work), on_cpu[0], tensor));
  }
  WorkPtr begun(WorkPtr work) {
    if (together_) together_->push_back(work);
    return work;
  }

  const c10::intrusive_ptr<c10d::Backend> on_cpu_;
  const std::string name_;
  std::mutex mutex_;  // guards the token; c10d calls without the GIL, which recording may take
  collectives::Caller caller_;
  std::optional<std::vector<WorkPtr>> together_;  // what was begun since startCoalescing()
};

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_process_group(c10::intrusive_ptr<c10d::Backend> on_cpu,
                                                     c10::intrusive_ptr<c10d::Store> store, std::string name,
                                                     std::chrono::milliseconds timeout) {
  return c10::make_intrusive<ProcessGroupLtc>(std::move(on_cpu), std::move(store), std::move(name), timeout);
}

}  // namespace ltc
