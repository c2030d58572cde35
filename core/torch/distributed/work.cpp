#include "core/torch/distributed/work.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/run/device/lazy_device.h"
#include "core/run/process/interrupt.h"
#include "core/torch/tensor/tensor.h"

namespace ltc::collectives {
namespace {

constexpr std::chrono::milliseconds kPoll{1};

// Names of events in the profiler, as those of PyTorch's own groups: backend and function.
const char* title_of(c10d::OpType type) {
  switch (type) {
    case c10d::OpType::BROADCAST: return "ltc:broadcast";
    case c10d::OpType::ALLREDUCE: return "ltc:all_reduce";
    case c10d::OpType::ALLREDUCE_COALESCED: return "ltc:allreduce_coalesced";
    case c10d::OpType::REDUCE: return "ltc:reduce";
    case c10d::OpType::ALLGATHER: return "ltc:all_gather";
    case c10d::OpType::_ALLGATHER_BASE: return "ltc:_all_gather_base";
    case c10d::OpType::ALLGATHER_COALESCED: return "ltc:all_gather_into_tensor_coalesced";
    case c10d::OpType::GATHER: return "ltc:gather";
    case c10d::OpType::SCATTER: return "ltc:scatter";
    case c10d::OpType::REDUCE_SCATTER: return "ltc:reduce_scatter";
    case c10d::OpType::_REDUCE_SCATTER_BASE: return "ltc:_reduce_scatter_base";
    case c10d::OpType::REDUCE_SCATTER_TENSOR_COALESCED: return "ltc:reduce_scatter_tensor_coalesced";
    case c10d::OpType::ALLTOALL_BASE: return "ltc:all_to_all_single";
    case c10d::OpType::ALLTOALL: return "ltc:all_to_all";
    default: return nullptr;
  }
}

LazyDevice& device_holding(const at::Tensor& tensor) { return lazy_storage(tensor.unsafeGetTensorImpl()).device(); }

}  // namespace

RecordedWork::RecordedWork(c10d::OpType type, const Tensors& inputs)
    : Work(-1, type, title_of(type), inputs), future_(c10::make_intrusive<c10::ivalue::Future>(c10::ListType::ofTensors())) {}

void RecordedWork::recorded(Tensors results) {
  results_ = std::move(results);
  if (!results_.empty()) event_ = device_holding(results_[0]).record_event(/*timed=*/false);
  future_->markCompleted(c10::IValue(results_));
  finish();
}

bool RecordedWork::isCompleted() { return !event_ || event_->reached(); }

bool RecordedWork::wait(std::chrono::milliseconds timeout) {
  if (timeout == kNoTimeout || !event_) return true;
  const auto until = std::chrono::steady_clock::now() + timeout;
  while (!event_->reached()) {
    TORCH_CHECK_WITH(DistBackendError, std::chrono::steady_clock::now() < until,
                     "ltc caught collective operation timeout: ", c10d::opTypeToString(retrieveOpType()),
                     " has not ended within ", timeout.count(), " ms");
    check_interrupt();
    std::this_thread::sleep_for(kPoll);
  }
  for (const at::Tensor& result : results_) {
    const BufferRef buffer = device_holding(result).computed(lazy_storage(result.unsafeGetTensorImpl()), metrics::kReadBarrier);
    if (buffer) DeviceQueue::check(*buffer);
  }
  return true;
}

void RecordedWork::abort() { TORCH_CHECK(false, "a collective of ltc that is recorded cannot be aborted by itself"); }

bool Message::wait(std::chrono::milliseconds timeout) {
  if (!work_->wait(timeout)) return false;
  const at::Tensor values = std::exchange(on_cpu_, at::Tensor());
  if (values.defined() && received_.defined()) {
    at::NoGradGuard no_grad;
    received_.copy_(values);
  }
  return true;
}

bool Together::isCompleted() {
  return std::ranges::all_of(works_, [](const WorkPtr& work) { return work->isCompleted(); });
}

bool Together::isSuccess() const {
  return std::ranges::all_of(works_, [](const WorkPtr& work) { return work->isSuccess(); });
}

void Together::abort() {
  for (const WorkPtr& work : works_) work->abort();
}

bool Together::wait(std::chrono::milliseconds timeout) {
  return std::ranges::all_of(works_, [&](const WorkPtr& work) { return work->wait(timeout); });
}

}  // namespace ltc::collectives
