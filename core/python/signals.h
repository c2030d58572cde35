// Python's signals end waits for the device: Ctrl-C.
#pragma once

namespace ltc {

// From now on: handlers run while the main thread waits, and an exception of one, KeyboardInterrupt, ends the wait.
void heed_signals();

}  // namespace ltc
