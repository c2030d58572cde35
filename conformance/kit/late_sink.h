// A sink that knows when it is called too late.
#pragma once

#include <atomic>

#include "ltc/plugin.h"

namespace ltc::conformance {

class LateSink {
 public:
  static constexpr const char* kClause =
      "a sink was called after the call that was given it; the contract: only during that call";

  const ltc_sink& sink() const { return sink_; }
  void end() {  // the call has returned
    has_ended_ = true;
    sink_.write = nullptr;  // of one that kept the sink and not what it holds
  }
  bool was_late() const { return was_late_; }

 private:
  static bool write(void* context, const void*, size_t) {
    auto& self = *static_cast<LateSink*>(context);
    if (self.has_ended_) self.was_late_ = true;
    return true;
  }

  std::atomic<bool> has_ended_{false}, was_late_{false};
  ltc_sink sink_{this, write};
};

}  // namespace ltc::conformance
