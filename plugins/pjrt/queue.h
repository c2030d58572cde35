// The order of a device's work. PJRT orders work by the buffers that it uses; the host sees one queue.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "pjrt/library.h"

namespace ltc::pjrt {

using Outcome = std::optional<plugin::Error>;  // nothing: it went well

// Something that was submitted.
struct Ticket {
  uint64_t end;  // it is over when as many tasks are
  std::shared_ptr<Outcome> outcome;
};

class Queue : public std::enable_shared_from_this<Queue> {
 public:
  using Verdict = std::function<Outcome()>;

  // Takes over the event, which may be NULL. `verdict` is asked once it is over and went well.
  Ticket submit(const Library& library, PJRT_Event* event, Verdict verdict = {});

  // Waits until all up to the ticket is over; false: the time is.
  bool wait(uint64_t end, uint64_t timeout_ns);
  // The task must be over.
  Outcome outcome(const Ticket& ticket);
  void drain();

 private:
  struct Pending;
  void finish(const Ticket& ticket, Outcome outcome);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<bool> over_;  // tasks from begin_ on
  uint64_t begin_ = 0;     // all before it are over
};

}  // namespace ltc::pjrt
