// The order of a device's work. PJRT orders work by the buffers that it uses and has no queue; here is what the host sees as one.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "pjrt/library.h"

namespace ltc::pjrt {

// Something that was submitted.
struct Ticket {
  uint64_t number = 0;
  std::shared_ptr<std::optional<abi::Error>> error;  // null: it cannot fail
};

class Queue : public std::enable_shared_from_this<Queue> {
 public:
  using Verdict = std::function<std::optional<abi::Error>()>;

  // Takes over the event, which may be NULL. `verdict` is asked once it is over without an error.
  Ticket submit(const Library& library, PJRT_Event* event, Verdict verdict = {});
  // What is over when all is that was submitted so far.
  Ticket mark();

  // Waits until all up to the ticket is over; false: the time is.
  bool wait(const Ticket& ticket, uint64_t timeout_ns);
  // Of one that is over.
  std::optional<abi::Error> error(const Ticket& ticket);
  void drain() { wait(mark(), LTC_FOREVER); }

 private:
  struct Pending;
  void finish(const Ticket& ticket, std::optional<abi::Error> error);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<bool> over_;  // from first_ on
  uint64_t first_ = 0;     // all before it are over
};

}  // namespace ltc::pjrt
