// LTC_CHECK: each run beside the same computed by the CPU, to find the op that a plugin computes wrong.
//
// The first run of a program also gives all values of its ops, each compared with what the CPU makes of the same operands: so an
// error is found where it arises, however deep, and rounding that adds up is none. Where the outputs differ and no op does, ops
// around the wrong value are run together, more and more of them, until they differ. A finding is reported once per op and line:
// in the log, in the counter WrongResults, and as a script that repeats it.
// Threads: whoever runs the queue's tasks.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/run/queue/host_ops.h"
#include "core/run/queue/run.h"

namespace ltc {

class DeviceExecutor;

class ResultCheck {
 public:
  explicit ResultCheck(DeviceExecutor& executor);

  static bool is_wanted();  // by LTC_CHECK

  // The run's inputs, before it may consume them. Throws the errors of buffers.
  std::vector<HostValue> copy_inputs(const Run& run);
  // Checks a run that went well. Throws nothing: what goes wrong in here is logged.
  void check(const Run& run, std::vector<HostValue> inputs) noexcept;

 private:
  enum Mode : uint8_t { kOff, kResults, kNan };
  struct Values;

  void check_results(const Run& run, Values& values);
  void check_nan(const Run& run, Values& values);
  bool check_each_op(const Run& run, Values& values);
  void check_fused(const Run& run, const Values& values, ValueId output);
  void fetch_all(const Run& run, Values& values);
  bool is_wrong(const Run& run, const Values& values, const std::vector<bool>& nodes, std::span<const ValueId> outputs);
  bool differs(const Run& run, const Values& values, const std::vector<bool>& nodes, ValueId output);
  void report(const Run& run, const Values& values, const std::vector<bool>& nodes, uint32_t node, const std::string& what);

  DeviceExecutor& executor_;
  const Mode mode_;
  std::set<uint64_t> checked_;  // programs whose ops were
  std::set<std::pair<OpId, LocationId>> reported_;
};

// Computes the graph once on the device and once on the CPU, and compares its outputs. `inputs`: of the params in order, numbers
// too. Returns a line for each output. Throws what the plugin throws.
std::string compare_with_cpu(DeviceExecutor& executor, const Graph& graph, const std::vector<HostValue>& inputs);

}  // namespace ltc
