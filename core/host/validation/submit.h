// The common part of transfer and execute: they submit work to a device's queue.
#pragma once

#include "core/host/validation/call.h"

namespace ltc::host::validation {

// The answers of work that is done when its submission returns.
inline constexpr Codes kRunCodes = code_bits(LTC_RESOURCE_EXHAUSTED, LTC_CANCELLED, LTC_TIMEOUT);

class Submit {
 public:
  Submit(Call& call, const Use<Device>& device, ltc_event** done);
  ~Submit();
  Submit(const Submit&) = delete;
  Submit& operator=(const Submit&) = delete;

  ltc_event** event() { return &event_; }  // for the plugin

  // Checks the answer and the event, and gives the event to the host. A run has so many outputs, and this signature.
  ltc_status* give(ltc_status* status, std::optional<size_t> outputs, std::shared_ptr<const Signature> signature);

 private:
  Call& call_;
  Device& device_;
  ltc_event** const done_;
  ltc_event* event_ = nullptr;
  const bool was_lost_;
};

}  // namespace ltc::host::validation
