// A run of a program, as it is submitted to a device's queue.
#pragma once

#include <exception>
#include <memory>
#include <vector>

#include "core/compile/cache/cache.h"
#include "core/compile/lowering/program.h"
#include "core/run/queue/buffer.h"
#include "core/run/queue/undo.h"

namespace ltc {

struct Run {
  std::shared_ptr<const Program> program;  // null: it could not be compiled, for the reason `refusal`
  std::vector<BufferRef> inputs;           // those of the step, else the program's; donated where the run has the last reference
  std::vector<Scalar> scalars;             // the same
  std::vector<BufferRef> outputs;
  uint64_t id = 0;
  bool is_awaited = false;  // who submits it will wait for a result at once
  // The step that the program was compiled from: if the run fails, it is repeated op by op. Null: all outputs fail with the run.
  std::shared_ptr<const RecordedStep> step = {};
  Undo undo = {};
  std::exception_ptr refusal = {};

  // The value of the program's param `i`.
  const BufferRef& input(size_t i) const { return inputs[step ? step->buffers[i] : i]; }
  const Scalar& scalar(size_t i) const { return scalars[step ? step->scalars[i] : i]; }
};

}  // namespace ltc
