#include "core/host/validation/answers.h"

namespace ltc::host::validation {
namespace {

bool LTC_CALL write(void* context, const void* data, size_t size) {
  const auto report_late = [&](const char* how) {
    report("sink.during_call", "plugin", "ltc_sink::write", how);
    return false;
  };
  const Use<Sink> sink(context);
  if (!sink) return report_late("after the call");
  if (sink->thread != std::this_thread::get_id()) return report_late("by another thread");
  if (sink->refused) report("sink.gives_up", sink->instance.name, "ltc_sink::write", "written again");
  if (sink->inner.write(sink->inner.context, data, size)) return true;
  sink->refused = true;
  return false;
}

}  // namespace

Lent::Lent(Call& call, const ltc_sink* sink) {
  if (!call.not_null(sink, "sink") || !call.not_null(reinterpret_cast<const void*>(sink->write), "write")) return;
  object_ = new Sink(call.instance(), *sink);
  Registry::instance().add(object_);
  sink_ = {object_, &write};
}

Lent::~Lent() {
  if (object_) Registry::instance().end(object_, Kind::kSink);
}

}  // namespace ltc::host::validation
