#include "core/host/validation/call.h"

#include "core/base/utf8.h"

namespace ltc::host::validation {
namespace {

constexpr Codes kOfEverySlot = code_bits(LTC_INTERNAL, LTC_DEVICE_LOST, LTC_UNSUPPORTED, LTC_INVALID_ARGUMENT);

// For a refusal where the handle is none of any instance.
std::atomic<Instance*> any_instance{nullptr};

}  // namespace

thread_local int InHost::depth = 0;

bool is_text(std::string_view bytes) { return valid_utf8(bytes) == bytes; }

bool is_string(const ltc_string& text) {
  if (!text.data) return text.size == 0;
  return text.data[text.size] == '\0' && is_text({text.data, text.size});
}

Call::~Call() {
  if (entered_) --instance_->inside;
}

void Call::enter(Instance& instance) {
  instance_ = &instance;
  any_instance = &instance;
  entered_ = true;
  const int inside = ++instance.inside;
  require(!instance.one_call_at_a_time || inside == 1, "plugin.one_call_at_a_time", inside, " calls at once");
  require(!InHost::is_here(), "host_api.no_call_back");
}

void Call::see(const void* handle, Kind kind, Object* object) {
  if (object && !entered_) enter(object->instance);
  if (object) return;
  possible_ = false;
  Object* const ended = Registry::instance().find(handle, kind);
  if (ended && !instance_) instance_ = &ended->instance;
  require(false, "handle.alive", handle, ended ? " has ended" : " was never given");
}

ltc_status* Call::refusal() const {
  const std::string text = cat(slot_, ": refused by LTC_VALIDATE, which has logged the reason");
  Instance* const of = instance_ ? instance_ : any_instance.load();
  return of ? of->host.status_create(of->host.host, LTC_INVALID_ARGUMENT, LTC_NONE, text.data(), text.size()) : nullptr;
}

void Call::sends(const ltc_extension* first) {
  for (const ltc_extension* one = first; one; one = one->next) {
    const auto listed = std::ranges::find(instance_->extensions, LTC_EXTENSION_KIND(one), &std::pair<uint32_t, uint32_t>::first);
    const bool is_listed = listed != instance_->extensions.end() && one->version >= 1 && one->version <= listed->second;
    require(is_listed, "args.extensions", "kind ", one->kind, ", version ", one->version);
  }
}

ltc_status* Call::examined(ltc_status* status, Codes codes, size_t nodes) {
  const auto made = Statuses::instance().take(status);
  if (!require(made.has_value(), "status.owned", "the answer is no status that the plugin holds")) return refusal();
  const bool is_listed = made->code < 32 && (kOfEverySlot | codes) >> made->code & 1;
  require(is_listed || made->code >= kFirstOfVendors, "status.code", "code ", made->code);
  require(made->node == LTC_NONE || nodes == kAnyNode || made->node < nodes, "status.node", "node ", made->node, " of ", nodes);
  return status;
}

}  // namespace ltc::host::validation
