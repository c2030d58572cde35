// Compiles programs in a thread of its own, while the host computes the steps that want them (LTC_BACKGROUND_COMPILE=1).
//
// The program that is asked for most often is compiled first. A job that nobody holds any more is dropped: its step has left the
// cache, or the device was lost. A compile that fails is left to the thread that asks next, which gets the error. Threads: all
// members from any thread. The compiler's own thread begins with the first job.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/compile/lowering/program.h"
#include "core/compile/lowering/target.h"

namespace ltc {

struct BackgroundJob;  // one program to compile
struct CompiledProgram;

class BackgroundCompiler {
 public:
  BackgroundCompiler() = default;
  ~BackgroundCompiler() { stop(); }

  // A job for ask() and wait().
  static std::shared_ptr<BackgroundJob> job(Graph graph, const CompileTarget& target);

  struct Answer {
    bool is_pending = false;
    std::shared_ptr<const Program> program = {};  // null where it is pending, or is the caller's to compile
  };
  // Asks for the program once more.
  Answer ask(const std::shared_ptr<BackgroundJob>& job);
  // The same for one that cannot be pending: waits if it is being compiled just now, and takes the job back if it is not.
  Answer wait(const std::shared_ptr<BackgroundJob>& job);

  // Ends the thread when it has compiled the program that it is at; afterwards each job is the caller's. From inside of that
  // compile, whose plugin ends the process, it waits for nothing.
  void stop();
  void rest();  // the same, but the next job begins another thread

 private:
  void work();
  std::shared_ptr<BackgroundJob> next();  // null at the end
  void finish(BackgroundJob& job, CompiledProgram compiled, uint64_t begin_ns);

  std::mutex mutex_;  // guards what follows, and how far the jobs are
  std::condition_variable changed_;
  std::vector<std::weak_ptr<BackgroundJob>> waiting_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace ltc
