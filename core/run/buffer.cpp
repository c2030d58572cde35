#include "core/run/buffer.h"

#include "core/base/log.h"
#include "core/compile/blame.h"
#include "core/run/fork.h"
#include "core/run/queue.h"

namespace ltc {

Completion::Completion(DeviceQueue& queue, ltc_event* event, std::vector<std::shared_ptr<Completion>> parents,
                       std::shared_ptr<const Step> step)
    : queue_(queue), event_(event), parents_(std::move(parents)), step_(std::move(step)) {}

Completion::Completion(DeviceQueue& queue, ltc_event* event, HostValue sent)
    : queue_(queue), event_(event), sent_(std::move(sent)) {}

Completion::~Completion() {
  if (!event_ || forked()) return;
  if (sent_.data) wait_until_over();
  queue_.device().destroy_event(event_);
}

bool Completion::try_wait(uint64_t timeout_ns) {
  std::lock_guard lock(mutex_);
  try {
    while (!parents_.empty()) {
      if (!parents_.back()->try_wait(timeout_ns)) return false;
      parents_.pop_back();
    }
    if (!wait_event(timeout_ns)) return false;
  } catch (...) {
    error_ = std::current_exception();
    parents_.clear();
  }
  queue_.device().destroy_event(std::exchange(event_, nullptr));
  step_.reset();
  sent_ = {};
  if (error_) std::rethrow_exception(error_);
  return true;
}

bool Completion::wait_event(uint64_t timeout_ns) {
  const auto wait = [&] { return queue_.device().wait(event_, timeout_ns); };
  return !event_ || (step_ ? blaming(*step_, wait) : wait());
}

void Completion::wait() { try_wait(host::kForever); }

bool Completion::finished() { return try_wait(0); }

bool Completion::is_over() noexcept { return try_wait_quietly(0); }

void Completion::wait_until_over() noexcept { try_wait_quietly(host::kForever); }

bool Completion::try_wait_quietly(uint64_t timeout_ns) noexcept {
  try {
    return try_wait(timeout_ns);
  } catch (const std::exception& error) {
    log::debug("work of the device failed: ", error.what());
    return true;
  }
}

void Buffer::own(ltc_buffer* made) {
  handle = made;
  if (made) queue.memory().add(type_of(type).size_bytes());
}

ltc_buffer* Buffer::disown() {
  if (handle) queue.memory().remove(type_of(type).size_bytes());
  return std::exchange(handle, nullptr);
}

Buffer::~Buffer() {
  if (handle && !forked()) queue.device().destroy_buffer(disown());
}

}  // namespace ltc
