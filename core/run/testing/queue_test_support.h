// Helpers of the queue's tests: one queue over a test plugin, and programs for it.
#pragma once

#include <optional>

#include "core/run/queue/queue.h"
#include "core/run/testing/test_support.h"

namespace ltc::testing {

using ProgramRef = std::shared_ptr<const Program>;

inline constexpr const char* kNeg = "graph(%0: f32[2]) { %1: f32[2] = aten::neg(%0) return %1 }";
inline constexpr const char* kDouble = "graph(%0: f32[2]) { %1: f32[2] = aten::add.Tensor(%0, %0) return %1 }";
inline constexpr const char* kSin = "graph(%0: f32[2]) { %1: f32[2] = aten::sin(%0) return %1 }";

// The test plugin claims neg, mul and add: sin is for the host.
inline constexpr const char* kHostInTheMiddle = R"(graph(%0: f32[2], %1: f64 scalar, %2: f32[2], %3: f64 scalar) {
    %4: f32[2] = aten::neg(%0)
    %5: f32[2] = aten::sin(%4)
    %6: f32[2] = aten::mul.Tensor(%5, %3)
    %7: f32[2] = aten::add.Tensor(%4, %2)
    return %6, %7 })";

class QueueTest : public RunTest {
 protected:
  // Once per test, before anything else.
  void open(const std::string& plugin, size_t window = 2) { queue_.emplace(open_device(plugin), window); }
  DeviceQueue& queue() { return *queue_; }

  ProgramRef program(const char* text) { return compile(parse(text), queue().device()); }
  BufferRef upload(const Floats& values) { return queue().upload(host_value(values)); }
  Floats download(const BufferRef& buffer) { return ltc::testing::download(queue(), buffer); }

  std::vector<BufferRef> run_all(const ProgramRef& program, std::vector<BufferRef> inputs, std::vector<double> scalars = {}) {
    ltc::Run run{program, std::move(inputs), {}, {}, ++run_id_};
    for (const double scalar : scalars) run.scalars.push_back(Scalar{.f = scalar});
    for (const ValueId output : program->graph.outputs) {
      run.outputs.push_back(std::make_shared<Buffer>(queue(), program->graph.types[output]));
    }
    std::vector<BufferRef> outputs = run.outputs;
    queue().execute(std::move(run));
    return outputs;
  }
  // Runs a program with one input and one output.
  BufferRef run(const ProgramRef& program, BufferRef input) {
    std::vector<BufferRef> inputs;
    inputs.push_back(std::move(input));
    return run_all(program, std::move(inputs)).at(0);
  }

  std::string download_error(const BufferRef& buffer) {
    return message_of([&] { download(buffer); });
  }

 private:
  std::optional<DeviceQueue> queue_;
  uint64_t run_id_ = 0;
};

}  // namespace ltc::testing
