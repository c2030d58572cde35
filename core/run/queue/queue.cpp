#include "core/run/queue/queue.h"

#include <future>

#include "core/report/memory_history.h"
#include "core/report/timeline.h"
#include "core/run/process/fork.h"
#include "core/run/process/interrupt.h"
#include "core/run/process/process_end.h"
#include "core/run/queue/copy_out.h"
#include "core/run/queue/result_check.h"

namespace ltc {

namespace {

// About what handing work to a sleeping thread costs both sides: what is shorter is done by who brings it.
constexpr int64_t kShortRun = 30'000;       // ns
constexpr int64_t kTinyRun = 7'000;         // ns: the same for a thread that spins
constexpr size_t kShortUpload = 256 << 10;  // bytes
constexpr size_t kMostSent = 64 << 10;      // bytes, kept beside a buffer

}  // namespace

DeviceQueue::DeviceQueue(std::unique_ptr<host::PluginDevice> device, size_t runs_in_flight)
    : DeviceMemory(std::move(device)),
      executor_(*this, runs_in_flight),
      tasks_(*device_, runs_in_flight, [this] { executor_.finish(); }) {}

std::shared_ptr<Fence> DeviceQueue::add_fence(bool timed) {
  refuse_after_fork();
  auto fence = std::make_shared<Fence>(*device_);
  bool passed = false;
  tasks_.try_here([&] {
    if (timed && executor_.newest() && !executor_.newest()->is_over()) return;  // would be waited for here
    if (timed) executor_.finish_timeline();
    fence->arrive(executor_.newest());
    passed = true;
  });
  if (passed) return fence->announce(), fence;
  const auto arrive = [this, timed, fence] {
    if (timed && executor_.newest()) executor_.newest()->wait_until_over();
    if (timed) executor_.finish_timeline();
    fence->arrive(executor_.newest());
  };
  tasks_.submit({.work = arrive, .announce = [fence] { fence->announce(); }});
  return fence;
}

void DeviceQueue::drain() {
  if (forked() || tasks_.is_working_here()) return;
  try {
    add_fence(/*timed=*/true)->wait();  // so the queue's thread is the one that waits in the plugin, where no signal ends a wait
  } catch (const Error&) {              // stopped meanwhile, which drains too
  }
}

template <typename Work>
auto DeviceQueue::wait_for(Work work) {
  const auto task = std::make_shared<std::packaged_task<decltype(work())()>>(std::move(work));
  auto result = task->get_future();
  tasks_.submit({[task] { (*task)(); }});
  return result.get();
}

void DeviceQueue::reopen_if_lost() {
  if (device_->is_lost()) wait_for([this] { executor_.reopen_if_lost(); });
}

std::string DeviceQueue::compare_with_cpu(const Graph& graph, const std::vector<HostValue>& inputs) {
  return wait_for([&] { return ltc::compare_with_cpu(executor_, graph, inputs); });
}

void DeviceQueue::rest() {
  drain();
  tasks_.rest();
}

void DeviceQueue::stop() { tasks_.stop(); }

// A long value on its way, which has its share of the room until it is gone.
struct DeviceQueue::Staged {
  ~Staged() {
    const size_t bytes = type_of(value.type).size_bytes();
    value = {};
    tasks.release(bytes);
  }

  TaskQueue& tasks;
  HostValue value;
};

BufferRef DeviceQueue::upload(HostValue value) {
  refuse_after_fork();
  auto buffer = make_buffer(*this, value.type);
  if (memory_history::enabled()) [[unlikely]]
    buffer->where = current_location();
  const size_t size = type_of(value.type).size_bytes();
  if (size <= kShortUpload) {
    tasks_.refuse_after_stop();
    if (size <= kMostSent && is_whole(type_of(value.type).dtype)) buffer->sent = value;
    buffer->host = std::move(value);  // uploaded by whoever reads it first
    return buffer;
  }
  LongCall call;
  tasks_.reserve(size);
  const std::shared_ptr<Staged> staged(new Staged{tasks_, std::move(value)});  // a std::function must be copyable
  tasks_.submit({[this, staged, buffer] { executor_.upload(staged->value, *buffer); }});
  return buffer;
}

bool DeviceQueue::copies_from(const DeviceQueue& other, TypeId type) const {
  return &device_->plugin() == &other.device_->plugin() && (device_->info().flags & LTC_DEVICE_PEER_COPY) &&
         demotion().storage_type(type) == other.demotion().storage_type(type);
}

template <typename Make>
BufferRef DeviceQueue::make_from(BufferRef source, TypeId type, Make make) {
  auto buffer = make_buffer(*this, type);
  buffer->where = source->where;
  tasks_.submit({[source = std::move(source), buffer, make = std::move(make)]() mutable {
    try {
      make(*source, *buffer);
      buffer->failure = source->failure;
    } catch (...) {
      buffer->error = std::current_exception();
    }
    source.reset();
  }});
  return buffer;
}

// Queues wait for what was submitted before, so never for each other.
BufferRef DeviceQueue::copy_from_peer(BufferRef source) {
  refuse_after_fork();
  const auto ready = std::make_shared<std::promise<void>>();
  auto& other = static_cast<DeviceQueue&>(source->memory);  // buffers come from queues
  other.tasks_.submit({[source, ready, &other] {
    try {
      other.executor_.require(*source);
      ready->set_value();
    } catch (...) {
      ready->set_exception(std::current_exception());
    }
  }});
  const TypeId type = source->type;
  return make_from(std::move(source), type, [this, ready](const Buffer& from, Buffer& buffer) {
    ready->get_future().get();
    executor_.copy_from_peer(from, buffer);
  });
}

BufferRef DeviceQueue::resized(BufferRef source, TypeId type) {
  refuse_after_fork();
  return make_from(std::move(source), type, [this](Buffer& from, Buffer& buffer) { executor_.resize(from, buffer); });
}

// Whether the queue's thread had better do it, rather than who submits it.
bool DeviceQueue::runs_beside(const Run& run) const {
  if (!run.program) return true;
  const int64_t typical = run.program->typical_ns.load(std::memory_order_relaxed);
  return typical > kShortRun || (tasks_.should_spin() && typical > kTinyRun && !run.is_awaited);
}

void DeviceQueue::execute(Run run) {
  refuse_after_fork();
  bool ran = false;
  const auto run_here = [&] {
    if (executor_.would_wait(run)) return;
    executor_.run(run);
    ran = true;
  };
  if (!runs_beside(run)) tasks_.try_here(run_here);
  if (ran) return;
  // How long an asynchronous device takes is not known.
  const bool is_known = run.program && !executor_.is_asynchronous();
  const int64_t expected_ns = is_known ? run.program->typical_ns.load(std::memory_order_relaxed) : INT64_MAX;
  auto shared = std::make_shared<Run>(std::move(run));  // a std::function must be copyable
  try {
    tasks_.submit({[this, shared] { executor_.run(*shared); }, expected_ns});
  } catch (...) {
    for (const BufferRef& output : shared->outputs) output->error = std::current_exception();
    throw;
  }
}

// A copy that the queue's thread makes; shared with it, as who waits may be interrupted and go.
struct DeviceQueue::Download {
  DeviceExecutor::CopyOut copy;
  std::mutex mutex = {};
  std::condition_variable changed = {};
  std::atomic<bool> finished{false};
  std::exception_ptr error = {};

  void work() {
    try {
      DeviceExecutor::tell(*copy.buffer);
      copy.finish();
    } catch (...) {
      error = std::current_exception();
    }
  }
  void announce() {
    std::lock_guard lock(mutex);
    finished = true;
    changed.notify_one();
  }
  void wait() {
    const auto is_finished = [&] { return finished.load(); };
    spin_until(kSpinForResult, is_finished);
    std::unique_lock lock(mutex);  // even if it has finished: the announcement must have ended
    wait_in_slices(changed, lock, is_finished);
  }
};

void DeviceQueue::download(const BufferRef& buffer, void* to, std::shared_ptr<void> memory) {
  LongCall call;
  DeviceExecutor::CopyOut copy(executor_, buffer, to, std::move(memory));
  std::exception_ptr error;
  bool is_over = false;
  const auto size_bytes = static_cast<int64_t>(type_of(buffer->type).size_bytes());
  tasks_.try_here([&] {
    timeline::Span span("download");
    span.count(0, size_bytes);
    try {
      DeviceExecutor::tell(*buffer);
      is_over = copy.finish_soon();
    } catch (...) {
      error = std::current_exception();
      is_over = true;
    }
  });
  if (!is_over) {
    host::Waiting waiting(*device_);
    const auto download = std::make_shared<Download>(std::move(copy));
    tasks_.submit({.work =
                       [download, size_bytes] {
                         timeline::Span span("download");
                         span.count(0, size_bytes);
                         download->work();
                       },
                   .announce = [download] { download->announce(); }});
    download->wait();
    error = download->error;
  }
  if (error) throw_to_reader(error);
}

void DeviceQueue::check(const Buffer& buffer) {
  try {
    DeviceExecutor::tell(buffer);
    buffer.wait_made();
  } catch (...) {
    throw_to_reader(std::current_exception());
  }
}

}  // namespace ltc
