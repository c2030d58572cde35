#include "core/ir/location.h"

#include "core/base/hash.h"
#include "core/base/intern.h"

namespace ltc {
namespace {

struct TextHash {
  uint64_t operator()(std::string_view text) const { return hash_bytes(0, text.data(), text.size()); }
};

InternTable<std::string, TextHash>& table() {
  static auto* instance = [] {
    auto* made = new InternTable<std::string, TextHash>("source lines");
    made->intern(std::string_view());  // kNoLocation
    return made;
  }();
  return *instance;
}

}  // namespace

namespace detail {
std::atomic<Locator> locator{nullptr}, callers{nullptr};
}

LocationId intern_location(std::string_view text) { return table().intern(text); }

std::string location_text(LocationId id) {
  const std::string& text = table()[id & ~kBackwardBits];
  return id & kInBackward && !text.empty() ? text + " (in its backward)" : text;
}

std::string at_location(LocationId id) {
  const std::string text = location_text(id);
  return text.empty() ? text : " at " + text;
}

void set_locator(Locator locator, Locator callers) {
  detail::locator = locator;
  detail::callers = callers;
}

}  // namespace ltc
