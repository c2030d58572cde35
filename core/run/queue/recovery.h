// Repeats a run that failed op by op, as eager mode would have run the step.
//
// Only what depends on an op that fails is lost. A storage that was to hold such a value gets the one that it held when the op
// was recorded, which is what eager mode leaves in it. The failure is told to whoever reads one of these values first. Needs the
// run's inputs: what an execution has consumed is lost too. Threads: whoever runs the queue's tasks.
#pragma once

#include <exception>
#include <memory>
#include <vector>

#include "core/compile/cache/cache.h"
#include "core/run/queue/buffer.h"

namespace ltc {

class DeviceExecutor;
struct Run;

class Recovery {
 public:
  // `error`: of the run. Outputs of the run that have a handle stay as they are.
  Recovery(DeviceExecutor& executor, Run& run, std::exception_ptr error);
  // Makes all outputs, or gives them an error. Throws nothing.
  void run() noexcept;

 private:
  struct Op;

  void repeat();
  ValueId value_of(size_t output) const;
  bool is_made(size_t output) const;
  bool is_wanted(ValueId value) const { return uses_[value] > 0 && !values_[value]; }  // and not there yet
  void count_uses();
  void read_input(ValueId param, size_t index);
  void lose(ValueId value, std::shared_ptr<Failure> failure, ValueId at);
  void run_op(ValueId node, LocationId location);
  Op describe(ValueId node, LocationId location) const;
  const std::shared_ptr<const Program>& program_of(ValueId node, Op& op);
  std::vector<BufferRef> execute(ValueId node, LocationId location, Op& op);
  void release_inputs(ValueId node);
  BufferRef* survivor_of(size_t output);
  void deliver();
  void take(Buffer& output, BufferRef& value, bool is_last);

  DeviceExecutor& executor_;
  Run& run_;
  const RecordedStep& step_;
  const std::exception_ptr error_;
  std::vector<uint32_t> uses_;       // by record: who will read it, outputs of the run included
  std::vector<BufferRef> values_;    // by record; null before it is computed, after its last use, and of a number
  std::vector<ValueId> lost_at_;     // by record: the first op that failed of those that it depends on, or kNone
  std::vector<uint32_t> scalar_of_;  // by record: which of the run's scalars it is
  size_t failed_ops_ = 0;
};

}  // namespace ltc
