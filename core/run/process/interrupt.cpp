#include "core/run/process/interrupt.h"

#include <atomic>

namespace ltc {
namespace {

std::atomic<CheckInterrupt> g_check{nullptr};

}  // namespace

void set_check_interrupt(CheckInterrupt check) { g_check = check; }

void check_interrupt() {
  if (const CheckInterrupt check = g_check) check();
}

}  // namespace ltc
