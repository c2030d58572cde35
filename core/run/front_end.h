// The functions that a front end gives the core.
#pragma once

#include "core/compile/lowering/precision.h"
#include "core/run/device/auto_steps.h"
#include "core/run/queue/host_ops.h"
#include "core/run/queue/queue.h"

namespace ltc {

struct FrontEnd {
  HostRunner run_on_host;         // ops that the plugin does not claim
  RunsHere may_run_here;          // whether the calling thread may do the queue's work itself
  ThrowToReader throw_to_reader;  // an error, as the front end's own exception
  ReadPrecision read_precision;   // what products may round
  WithinBackward within_backward;
  WarmUp warm_up;  // of recording, ahead of the first step
};

// Once, before anything is recorded.
inline void install(const FrontEnd& front_end) {
  set_host_runner(front_end.run_on_host);
  set_runs_here(front_end.may_run_here);
  set_throw_to_reader(front_end.throw_to_reader);
  set_read_precision(front_end.read_precision);
  set_within_backward(front_end.within_backward);
  set_warm_up(front_end.warm_up);
}

}  // namespace ltc
