// Copying a buffer's contents out of a device. Private to the queue and its executor.
#pragma once

#include "core/run/queue/executor.h"

namespace ltc {

// In parts where it takes long: begun by who reads the value, ended by the queue's thread. Members are called where the queue's
// work is done, one at a time.
struct DeviceExecutor::CopyOut {
  // To `to`, dense and row-major, which `memory` keeps alive.
  CopyOut(DeviceExecutor& executor, BufferRef buffer, void* to, std::shared_ptr<void> memory)
      : buffer(std::move(buffer)), executor(executor), to(to), memory(std::move(memory)) {}

  const BufferRef buffer;

  // Waits. Throws the error of what made the buffer, or of the copy.
  void finish();
  // The same without a long wait: false where finish() has to go on.
  bool finish_soon();

 private:
  template <typename IsOver>
  bool advance(IsOver is_over);
  void begin();

  DeviceExecutor& executor;
  void* to;
  std::shared_ptr<void> memory;
  bool is_begun = false;
  HostValue received = {};  // where the device keeps another type
  std::shared_ptr<Completion> copied = {};
};

}  // namespace ltc
