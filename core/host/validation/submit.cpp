#include "core/host/validation/submit.h"

namespace ltc::host::validation {

Submit::Submit(Call& call, const Use<Device>& device, ltc_event** done)
    : call_(call), device_(*device.get()), done_(done), was_lost_(device->lost) {
  const int submitting = ++device_.submitting;
  call.require(submitting == 1, "device.one_submit_at_a_time", submitting, " at once");
  if (call.not_null(done, "done")) call.require(!*done, "out.preset", "done");
}

Submit::~Submit() { --device_.submitting; }

ltc_status* Submit::give(ltc_status* status, std::optional<size_t> outputs, std::shared_ptr<const Signature> signature) {
  const ltc_code code = status ? call_.instance().host.status_code(status) : 0;
  if (was_lost_) call_.require(code == LTC_DEVICE_LOST, "device.lost_is_sticky", "it answers code ", code);
  if (code == LTC_DEVICE_LOST) device_.lost = true;
  if (status) {
    call_.require(!event_, "out.unchanged", "an event was written with an error");
    return status;
  }
  uint64_t sequence = 0;
  {
    std::lock_guard guard(device_.lock);
    sequence = ++device_.submitted;
  }
  if (!event_) return nullptr;
  if (!call_.require(call_.instance().has_events(), "submit.no_event")) {
    *done_ = event_;  // the host refuses it by itself
    return nullptr;
  }
  auto* made = new Event(Kind::kEvent, call_.instance(), &device_, event_);
  made->sequence = sequence;
  made->outputs = outputs;
  made->signature = std::move(signature);
  *done_ = Call::handle_of<Event>(call_.adopted<Event>(made));
  return nullptr;
}

}  // namespace ltc::host::validation
