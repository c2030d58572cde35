#include "core/run/queue/buffer.h"

#include <thread>
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
    if (event && !forked()) memory.device().destroy_event(event, generation);
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  struct Result {
    bool is_over;
    std::exception_ptr error;        // the first of what is over
    std::vector<uint8_t> good = {};  // of a run that failed by itself, by output
  };

  // Throws WaitFailed.
  Result wait(uint64_t timeout_ns) const {
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
    const auto wait_for_event = [&] { return !event || memory.device().wait(event, timeout_ns, generation); };
    for (const Made& parent : parents) {
      if (!is_over([&] { return parent.by->try_wait_for(parent.output, timeout_ns); })) return {false, error};
    }
    const bool has_inputs = !error;
    if (!is_over([&] { return step ? with_error_context(*step, wait_for_event) : wait_for_event(); })) return {false, error};
    return {true, error, error && has_inputs ? good_outputs() : std::vector<uint8_t>()};
  }

  std::vector<uint8_t> good_outputs() const {
    try {
      if (step) return memory.device().good_outputs(event, step->outputs.size(), generation);
    } catch (const Error& refusal) {
      log::debug("which outputs of a failed run are good is not known: ", refusal.what());
    }
    return {};
  }

  DeviceMemory& memory;
  ltc_event* const event;
  const uint32_t generation = memory.device().generation();
  std::vector<Made> parents;
  std::shared_ptr<const Step> step;
  HostValue source;
};

Completion::Completion(DeviceMemory& memory, ltc_event* event, std::vector<Made> parents, std::shared_ptr<const Step> step,
                       bool may_fail)
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
    Work::Result result = work->wait(timeout_ns);
    if (!result.is_over) return false;
    error = result.error;
    std::lock_guard lock(mutex_);
    error_ = error;
    good_ = std::move(result.good);
    work_.reset();
  }
  if (error) std::rethrow_exception(error);
  return true;
}

void Completion::wait() { try_wait(host::kForever); }

void Completion::wait_for(uint32_t output) { try_wait_for(output, host::kForever); }

bool Completion::try_wait_for(uint32_t output, uint64_t timeout_ns) {
  try {
    return try_wait(timeout_ns);
  } catch (const host::WaitFailed&) {
    throw;
  } catch (...) {
    if (!is_good(output)) throw;
    return true;
  }
}

bool Completion::is_good(uint32_t output) {
  std::lock_guard lock(mutex_);
  return output < good_.size() && good_[output] != 0;
}

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
  if (made) {
    memory.add(*this, made);
  } else {
    disown();
  }
}

ltc_buffer* Buffer::disown() { return memory.remove(*this); }

void Buffer::release() noexcept {
  const auto open = memory.device().keep_open();
  memory.device().destroy_buffer(open, disown());
}

bool Buffer::is_made() const { return !completion || completion->finished_for(output); }

void Buffer::wait_made() const {
  if (completion) completion->wait_for(output);
}

void Buffer::require_not_lost() const {
  if (handle || generation_ == 0 || generation_ == memory.device().generation()) return;
  fail(Code::kDeviceLost, "[", memory.device().plugin().name(),
       "] the value lived on a device that was lost: ", memory.device().loss());
}

Buffer::~Buffer() {
  if (generation_ > 0 && !forked()) release();
}

}  // namespace ltc
