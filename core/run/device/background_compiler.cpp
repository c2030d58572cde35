#include "core/run/device/background_compiler.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "core/base/log.h"
#include "core/compile/build_program.h"
#include "core/report/compiles.h"
#include "core/report/metrics.h"
#include "core/report/timeline.h"
#include "core/run/process/fork.h"

namespace ltc {

struct BackgroundJob {
  enum State : uint8_t { kIdle, kWaiting, kRunning, kDone };

  const Graph graph;
  const CompileTarget target;
  State state = kIdle;
  int64_t times_asked = 0;
  std::shared_ptr<const Program> program = {};  // of one that is done; null: it failed
};

namespace {

constexpr size_t kMostWaiting = 64;  // further jobs wait for the next time that they are asked for

// Without a program where that fails.
CompiledProgram build(const BackgroundJob& job) {
  timeline::Span span("compile");
  span.because("background");
  try {
    CompiledProgram compiled = build_program(job.graph, job.target);
    span.of(*compiled.program);
    return compiled;
  } catch (const std::exception& error) {
    log::info("a program was not compiled in the background, it is tried once more when it is wanted: ", error.what());
    return {};
  }
}

}  // namespace

std::shared_ptr<BackgroundJob> BackgroundCompiler::job(Graph graph, const CompileTarget& target) {
  return std::shared_ptr<BackgroundJob>(new BackgroundJob{std::move(graph), target});
}

BackgroundCompiler::Answer BackgroundCompiler::ask(const std::shared_ptr<BackgroundJob>& job) {
  std::lock_guard lock(mutex_);
  ++job->times_asked;
  if (job->state == BackgroundJob::kDone) return {false, job->program};
  if (stopping_) return {};
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  if (job->state != BackgroundJob::kIdle) return {true};
  std::erase_if(waiting_, [](const auto& one) { return one.expired(); });
  if (waiting_.size() < kMostWaiting) {
    waiting_.push_back(job);
    job->state = BackgroundJob::kWaiting;
    changed_.notify_all();
  }
  return {true};
}

BackgroundCompiler::Answer BackgroundCompiler::wait(const std::shared_ptr<BackgroundJob>& job) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return job->state != BackgroundJob::kRunning; });
  if (job->state == BackgroundJob::kDone) return {false, job->program};
  std::erase_if(waiting_, [&](const auto& one) { return one.lock() == job; });
  job->state = BackgroundJob::kIdle;
  return {};
}

std::shared_ptr<BackgroundJob> BackgroundCompiler::next() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return nullptr;
    const auto times_asked = [](const std::weak_ptr<BackgroundJob>& one) {
      const auto job = one.lock();
      return job ? job->times_asked : 0;
    };
    const auto most = std::ranges::max_element(waiting_, {}, times_asked);
    std::shared_ptr<BackgroundJob> job = most->lock();
    waiting_.erase(most);
    if (!job) continue;
    job->state = BackgroundJob::kRunning;
    return job;
  }
}

void BackgroundCompiler::finish(BackgroundJob& job, CompiledProgram compiled, uint64_t begin_ns) {
  std::lock_guard lock(mutex_);
  if (compiled.program) {
    metrics::counter(metrics::kBackgroundCompile) += 1;
    note_compile({.reason = "background", .begin_ns = begin_ns}, compiled);
  }
  job.program = std::move(compiled.program);
  job.state = BackgroundJob::kDone;
  changed_.notify_all();
}

void BackgroundCompiler::work() {
  pthread_setname_np(pthread_self(), "ltc_compile");  // for debuggers and profilers
  while (const std::shared_ptr<BackgroundJob> job = next()) {
    const uint64_t begin_ns = timeline::now_ns();
    finish(*job, build(*job), begin_ns);
  }
}

void BackgroundCompiler::stop() {
  const bool is_forked = forked();
  std::unique_lock lock(mutex_, std::defer_lock);
  if (!is_forked) lock.lock();  // in a fork, a thread that is not there may hold it
  std::thread thread = std::move(thread_);
  stopping_ = true;
  changed_.notify_all();
  if (lock) lock.unlock();
  if (!thread.joinable()) return;
  const bool is_here = thread.get_id() == std::this_thread::get_id();
  is_forked || is_here ? thread.detach() : thread.join();  // it is not there, or ends with the process
}

void BackgroundCompiler::rest() {
  std::unique_lock lock(mutex_);
  const bool was_stopped = stopping_;
  lock.unlock();
  stop();
  lock.lock();
  stopping_ = was_stopped;
}

}  // namespace ltc
