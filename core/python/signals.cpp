#include "core/python/signals.h"

#include <pybind11/pybind11.h>
#include <unistd.h>

#include "core/run/process/interrupt.h"

namespace ltc {
namespace {

// Python runs handlers in the main thread only.
void check_signals() {
  if (gettid() != getpid()) return;
  const pybind11::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
}

}  // namespace

void heed_signals() {
  set_check_interrupt(&check_signals);
  static const int ended = Py_AtExit([] { set_check_interrupt(nullptr); });
  (void)ended;
}

}  // namespace ltc
