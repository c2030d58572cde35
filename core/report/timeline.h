// When each thing happened, why, for which line of the user's and how many bytes: on the tracing threads and on the device
// queues. Off by default, then one branch per span.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/api.h"
#include "core/base/error.h"
#include "core/compile/passes/graph_stage.h"
#include "core/ir/location.h"

namespace ltc {

struct Program;
struct Step;

namespace timeline {

// On tracing threads: "barrier", "compile", "load" (a program of the disk), "read" (a value, or all that a copy to the host
// needs), "send" (a value's bytes are handed over), "fallback" (one op on the CPU), "wait". On a queue: "execute", "host_step"
// (of an execution), "upload", "download", "copy_from_peer", "resize", "recover" (a run that failed, op by op), and "device":
// from the submission of a run, or the end of the one before, to its end on an asynchronous device. "kernel": of a run that was
// looked into, with its name as reason and its number in the step as ops.
struct Event {
  const char* name;
  std::string reason;     // of a barrier its counter, of a fallback or host step the op, of a compile what differs; may be empty
  std::string detail;     // in words; of a read, the library's functions that asked for it
  uint64_t contents = 0;  // of a send: a hash of the bytes, to find those that are sent again
  LocationId where = 0;   // the user's line, where it is known
  uint64_t thread = 0;    // the system's number of it
  uint64_t begin_ns = 0, end_ns = 0;  // steady clock
  uint64_t run_id = 0;                // which run of a program; 0 where it does not apply, as are the next two
  uint64_t program = 0;               // Program::id
  int64_t ops = 0;                    // of a trace, a program or a host step
  int64_t bytes = 0;
};

// A kernel in the plugin's sense (ltc/profile.h), in one run or summed over those that were looked into.
struct Kernel {
  std::string name;
  std::string note;                   // why it is not one with another
  uint32_t step = 0;                  // of the program
  std::vector<uint32_t> nodes;        // of the program's graph, ascending
  uint64_t bytes = 0;                 // that it moves at least; 0: not known
  uint64_t begin_ns = 0, end_ns = 0;  // in one run; 0: not measured
  int64_t runs = 0, total_ns = 0;     // of those that were measured
};

// A block of the memory between the kernels of a step.
struct Scratch {
  std::string label;  // its value with the type
  uint32_t step = 0;
  uint64_t offset = 0, bytes = 0;
  uint32_t first = 0, last = 0;  // which of the step's kernels write it and read it last
};

struct RunKernels {
  uint64_t run_id = 0;
  uint32_t step = 0;
  std::vector<Kernel> kernels;  // in the order of execution
  std::vector<Scratch> scratch;
};

// A program that was compiled or ran meanwhile.
struct ProgramFacts {
  uint64_t id = 0;
  std::string graph;               // as text, with lines
  std::vector<GraphStage> stages;  // how it became so, if it was compiled meanwhile
  int64_t ops = 0, device_steps = 0, host_steps = 0;
  bool is_from_disk = false;
  std::vector<Kernel> kernels;  // by step
  std::vector<Scratch> scratch;
};

ProgramFacts facts_of(const Program& program);  // no kernels: add_kernels() knows those

struct Timeline {
  std::vector<Event> events;           // in order of their ends
  std::vector<ProgramFacts> programs;  // those that events name
  uint64_t begin_ns = 0, end_ns = 0;
  uint64_t thread = 0;  // which called start()
  int64_t dropped = 0;  // events beyond the first million
};

// Forgets earlier events. A run that is looked into kernel by kernel is slower. That is done for a program's runs 1, 4, 16 and so
// on, or for every one.
LTC_API void start(bool every_kernel = false);
LTC_API Timeline stop();
bool enabled();
uint64_t now_ns();

void add(Event event);                                        // of the calling thread, if the timeline is on
void add_program(const Program& program);                     // the same; the first time counts
bool wants_kernels(const Program& program, uint64_t run_id);  // whether to look into that run
void add_kernels(const Program& program, RunKernels found);

// Records the time between construction and destruction.
class Span {
 public:
  explicit Span(const char* name, uint64_t run_id = 0) {
    if (enabled()) begin(name, run_id);
  }
  ~Span() {
    if (event_.begin_ns != 0) end();
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

  bool is_on() const { return event_.begin_ns != 0; }
  // For these, nothing happens while it is off.
  void rename(const char* name) {
    if (is_on()) event_.name = name;
  }
  void because(std::string_view reason) {
    if (is_on()) event_.reason = reason;
  }
  template <typename... Parts>
  void detail(const Parts&... parts) {
    if (is_on()) event_.detail = cat(parts...);
  }
  void at(LocationId where) {
    if (is_on()) event_.where = where;
  }
  void here();          // the line where the calling thread is; with no lock of ours held, as for the next
  void with_callers();  // and the library's functions that called
  void count(int64_t ops, int64_t bytes = 0) {
    if (is_on()) event_.ops = ops, event_.bytes = bytes;
  }
  void contents(const void* data, size_t bytes);
  void of(const Program& program);
  void of(const Step& host_step);  // its first op, why the CPU runs that, and the bytes that cross its border

 private:
  void begin(const char* name, uint64_t run_id);
  void end();

  Event event_;
};

}  // namespace timeline
}  // namespace ltc
