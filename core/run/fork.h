// A forked child has the parent's handles but not its threads: it must neither use nor give back anything of the device.
#pragma once

#include "core/base/api.h"

namespace ltc {

void watch_forks();        // from the first use of a device on; idempotent
LTC_API bool forked();     // whether this process is a child forked after that
void refuse_after_fork();  // throws Error(kUnsupported) there

}  // namespace ltc
