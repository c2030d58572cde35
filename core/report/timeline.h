// When each thing happened, on the tracing threads and on the device queues: off by default, then one branch per span.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/api.h"

namespace ltc::timeline {

struct Event {
  std::string name;   // "barrier", "compile", "execute", "upload", "download", "copy_from_peer", "resize", "recover"
  uint64_t thread;    // distinguishes threads
  uint64_t begin_ns;  // steady clock
  uint64_t end_ns;
  uint64_t run_id;  // which run of a program; 0 where it does not apply
};

LTC_API void start();               // forgets earlier events
LTC_API std::vector<Event> stop();  // in order of their ends
bool enabled();
uint64_t now_ns();

// Records the time between construction and destruction.
class Span {
 public:
  explicit Span(const char* name, uint64_t run_id = 0) : name_(name), run_id_(run_id), begin_ns_(enabled() ? now_ns() : 0) {}
  ~Span();
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  const char* name_;
  uint64_t run_id_, begin_ns_;
};

}  // namespace ltc::timeline
