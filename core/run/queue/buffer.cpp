#include "core/run/queue/buffer.h"

#include <thread>
#include <tuple>
#include <utility>

#include "core/base/log.h"
#include "core/compile/lowering/error_context.h"
#include "core/run/process/fork.h"
#include "core/run/queue/device_memory.h"

namespace ltc {
namespace {

// A wait that failed is tried again so often.
constexpr int kWaits = 20;
constexpr std::chrono::milliseconds kPause{50};

}  // namespace

// Submitted work, and the objects that it keeps alive until it is done.
struct Completion::Work {
  Work(DeviceMemory& owner, ltc_event* awaited) : memory(owner), event(awaited) {}
  ~Work() {
    if (event && !forked()) memory.device().destroy_event(event);
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  // False when the time ran out. With the first error of what is over. Throws WaitFailed.
  std::pair<bool, std::exception_ptr> wait(uint64_t timeout_ns) const {
    std::exception_ptr error;
    const auto is_over = [&](const auto& wait) {
      try {
        return wait();
      } catch (const host::WaitFailed&) {
        throw;
      } catch (...) {
        if (!error) error = std::current_exception();
        return true;
      }
    };
    const auto wait_for_event = [&] { return memory.device().wait(event, timeout_ns); };
    bool over = true;
    for (const auto& parent : parents) over = over && is_over([&] { return parent->try_wait(timeout_ns); });
    over = over && is_over([&] { return step ? with_error_context(*step, wait_for_event) : wait_for_event(); });
    return {over, error};
  }

  DeviceMemory& memory;
  ltc_event* const event;
  std::vector<std::shared_ptr<Completion>> parents;
  std::shared_ptr<const Step> step;
  HostValue source;
};

Completion::Completion(DeviceMemory& memory, ltc_event* event, std::vector<std::shared_ptr<Completion>> parents,
                       std::shared_ptr<const Step> step, bool may_fail)
    : may_fail_(may_fail) {
  auto work = std::make_shared<Work>(memory, event);
  work->parents = std::move(parents);
  work->step = std::move(step);
  work_ = std::move(work);
}

Completion::Completion(DeviceMemory& memory, ltc_event* event, HostValue source) {
  if (!event) return;
  auto work = std::make_shared<Work>(memory, event);
  work->source = std::move(source);
  work_ = std::move(work);
}

Completion::~Completion() {
  if (!work_ || !work_->source.data || forked()) return;
  wait_until_over();
  if (!work_) return;
  log::error("a copy of the device cannot be waited for; the memory that it uses stays");
  new std::shared_ptr<const Work>(work_);
}

bool Completion::try_wait(uint64_t timeout_ns) {
  std::shared_ptr<const Work> work;
  std::exception_ptr error;
  {
    std::lock_guard lock(mutex_);
    work = work_;
    error = error_;
  }
  if (work) {
    bool over = false;
    std::tie(over, error) = work->wait(timeout_ns);
    if (!over) return false;
    std::lock_guard lock(mutex_);
    error_ = error;
    work_.reset();
  }
  if (error) std::rethrow_exception(error);
  return true;
}

void Completion::wait() { try_wait(host::kForever); }

bool Completion::finished() { return try_wait(0); }

bool Completion::is_over() noexcept { return try_wait_quietly(0); }

bool Completion::is_over_within(std::chrono::nanoseconds time) noexcept {
  return try_wait_quietly(static_cast<uint64_t>(time.count()));
}

void Completion::wait_until_over() noexcept {
  for (int tries = 0; !try_wait_quietly(host::kForever) && tries < kWaits; ++tries) std::this_thread::sleep_for(kPause);
}

bool Completion::try_wait_quietly(uint64_t timeout_ns) noexcept {
  try {
    return try_wait(timeout_ns);
  } catch (const host::WaitFailed& error) {
    log::warn("the device cannot be waited for: ", error.what());
    return false;
  } catch (const std::exception& error) {
    log::debug("work of the device failed: ", error.what());
    return true;
  }
}

void Buffer::own(ltc_buffer* made) {
  handle = made;
  if (made) memory.memory().add(type_of(type).size_bytes());
}

ltc_buffer* Buffer::disown() {
  if (handle) memory.memory().remove(type_of(type).size_bytes());
  return std::exchange(handle, nullptr);
}

Buffer::~Buffer() {
  if (handle && !forked()) memory.device().destroy_buffer(disown());
}

}  // namespace ltc
