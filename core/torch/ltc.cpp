#include "core/torch/ltc.h"

#include <ATen/Context.h>
#include <c10/core/DeviceType.h>
#include <torch/csrc/autograd/graph_task.h>

#include <cstdlib>
#include <mutex>

#include "core/base/env.h"
#include "core/report/fallback_policy.h"
#include "core/run/device/device_table.h"
#include "core/run/front_end.h"
#include "core/run/process/fork.h"
#include "core/torch/dispatch/host_segment.h"
#include "core/torch/dispatch/register.h"
#include "core/torch/dispatch/warm_up.h"
#include "core/torch/tensor/assertions.h"
#include "core/torch/tensor/tensor.h"
#include "core/torch/tensor/thread_state.h"
#include "ltc/precision.h"

namespace ltc {

namespace {

// The CPU throws these at the op, with the type that programs catch.
void throw_as_pytorch(const Error& error) {
  TORCH_CHECK_INDEX(error.code() != Code::kOutOfRange, error.what());
  TORCH_CHECK_NOT_IMPLEMENTED(error.code() != Code::kUnsupported, error.what());
}

// In every version of PyTorch, whether it answers with a bool or says more.
template <typename Answer>
bool is_allowed(Answer answer) {
  if constexpr (std::is_same_v<Answer, bool>) {
    return answer;
  } else {
    return answer == Answer::AllowReducedPrecisionWithSplitK;
  }
}

// Where PyTorch's older flags and its newer ones meet, so that whichever a program sets are seen.
bool in_tf32(const at::Context& context, at::Float32Op op) {
  return context.float32Precision(at::Float32Backend::CUDA, op) == at::Float32Precision::TF32;
}

uint32_t allowed_precision() {
  const at::Context& context = at::globalContext();
  return (in_tf32(context, at::Float32Op::MATMUL) ? LTC_PRODUCTS_IN_TF32 : 0) |
         (in_tf32(context, at::Float32Op::CONV) ? LTC_CONVOLUTIONS_IN_TF32 : 0) |
         (is_allowed(context.allowFP16ReductionCuBLAS()) ? LTC_PARTIAL_SUMS_IN_F16 : 0) |
         (is_allowed(context.allowBF16ReductionCuBLAS()) ? LTC_PARTIAL_SUMS_IN_BF16 : 0);
}

}  // namespace

void register_device() {
  static std::once_flag once;
  std::call_once(once, [] {
    env::check();
    c10::register_privateuse1_backend(kDeviceName);
    register_all_ops();
    install(FrontEnd{&run_on_host, &nothing_intercepts_thread, &throw_as_pytorch, &allowed_precision,
                     [] { return torch::autograd::get_current_graph_task_id() >= 0; }, &warm_up_recording});
    std::atexit(&shut_down);
  });
}

void mark_step() {
  DeviceTable::instance().for_each([](LazyDevice& device) { device.sync(metrics::kMarkStep); });
}

void wait_device_ops() {
  DeviceTable::instance().for_each([](LazyDevice& device) {
    device.wait();
    check_assertions(device);
  });
}

int64_t counter_value(const std::string& name) { return metrics::counter_value(name); }
std::vector<std::string> counter_names() { return metrics::counter_names(); }
std::string metrics_report() { return metrics::report(); }
void reset_metrics() { metrics::reset(); }
void shut_down() {
  DeviceTable::instance().shut_down();
  if (!forked()) log_fallback_summary();
}

}  // namespace ltc
