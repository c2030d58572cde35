#include "core/run/queue/device_times.h"

#include <algorithm>

#include "core/compile/lowering/program.h"
#include "core/report/timeline.h"
#include "core/run/process/fork.h"
#include "core/run/queue/buffer.h"
#include "core/run/queue/run_profile.h"

namespace ltc {

DeviceTimes::DeviceTimes() = default;

DeviceTimes::~DeviceTimes() { finish(); }

void DeviceTimes::watch(std::shared_ptr<Completion> run, uint64_t run_id, const Program& program, uint64_t begin_ns,
                        std::unique_ptr<RunProfile> profile) {
  timeline::add_program(program);
  std::lock_guard lock(mutex_);
  watched_.push_back(
      {std::move(run), run_id, program.id, begin_ns, static_cast<int64_t>(program.graph.nodes.size()), std::move(profile)});
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  changed_.notify_one();
}

void DeviceTimes::finish() {
  if (!thread_.joinable()) return;
  if (forked()) return thread_.detach();  // it is not there
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_one();
  }
  thread_.join();
  stopping_ = false;
}

void DeviceTimes::work() {
  uint64_t idle_since = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || !watched_.empty(); });
    if (watched_.empty()) return;
    Watched run = std::move(watched_.front());
    watched_.pop_front();
    lock.unlock();
    run.completion->wait_until_over();
    const uint64_t begin = std::max(run.begin_ns, idle_since);
    idle_since = timeline::now_ns();
    timeline::add({.name = "device",
                   .begin_ns = begin,
                   .end_ns = idle_since,
                   .run_id = run.run_id,
                   .program = run.program,
                   .ops = run.ops});
    if (run.profile) run.profile->report();
    // A plugin whose event never ended may still write to it.
    if (!run.completion->is_over()) (void)run.profile.release();
    lock.lock();
  }
}

}  // namespace ltc
