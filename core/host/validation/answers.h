// Out parameters that are no handles.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>

#include "core/host/validation/call.h"

namespace ltc::host::validation {

// As the host presets them; padding may hold anything.
inline bool is_empty(const ltc_string& text) { return !text.data && text.size == 0; }
inline bool is_preset(const ltc_plugin_info& info) {
  return !info.ext && is_empty(info.name) && is_empty(info.version) && is_empty(info.build_id) && is_empty(info.why_no_device) &&
         is_empty(info.licence) && (info.device_count | info.sanitizers | info.flags) == 0 && info.option_count == 0 &&
         !info.options;
}
inline bool is_preset(const ltc_device_info& info) {
  return !info.ext && is_empty(info.name) && is_empty(info.fingerprint) && (info.dtypes | info.memory_bytes | info.flags) == 0;
}
inline bool is_preset(const ltc_memory_stats& stats) {
  return (stats.in_use_bytes & stats.peak_bytes & stats.limit_bytes & stats.largest_free_bytes) == UINT64_MAX;
}

// A struct that the plugin writes, with bytes behind it that it must leave alone.
template <typename Struct>
class Written {
 public:
  // `out` is the host's struct, which stays as it is until give().
  Written(Call& call, Struct* out, size_t size) : call_(call), out_(out) {
    if (!call.sized(out, size)) return;
    used_ = std::min(out->struct_size, sizeof(Struct));
    std::memset(static_cast<void*>(&copy_), kBehind, sizeof copy_);
    std::memcpy(static_cast<void*>(&copy_.value), out, used_);
    std::memcpy(static_cast<void*>(&before_), &copy_, sizeof copy_);  // padding too
    call.require(is_preset(copy_.value), "out.preset", "a struct");
  }

  Struct* get() { return &copy_.value; }

  // Checks what was written, and gives it to the host if the call went well.
  void give(const ltc_status* status) {
    const auto* const now = reinterpret_cast<const std::byte*>(&copy_);
    const auto* const before = reinterpret_cast<const std::byte*>(&before_);
    const bool is_within = copy_.value.struct_size == before_.value.struct_size &&
                           std::memcmp(now + used_, before + used_, sizeof copy_ - used_) == 0;
    call_.require(is_within, "out.within_size");
    if (status) call_.require(std::memcmp(now, before, used_) == 0, "out.unchanged", "a struct was written with an error");
    copy_.value.struct_size = before_.value.struct_size;
    if (!status) std::memcpy(static_cast<void*>(out_), &copy_.value, used_);
  }

 private:
  static constexpr int kBehind = 0x5a;
  struct Copy {
    Struct value;
    std::byte behind[64];
  };
  Call& call_;
  Struct* const out_;
  size_t used_ = 0;
  Copy copy_, before_;
};

// An array that the plugin writes and the host has zeroed.
template <typename T>
void check_zeroed(Call& call, const T* array, size_t count, const char* what) {
  if (!call.not_null(array, what, count)) return;
  call.require(std::all_of(array, array + count, [](T one) { return one == 0; }), "out.preset", what, " is not zero");
}
template <typename T>
void check_unchanged(Call& call, const ltc_status* status, const T* array, size_t count, const char* what) {
  if (status) call.require(std::all_of(array, array + count, [](T one) { return one == 0; }), "out.unchanged", what);
}

// The host's sink, lent for one call.
class Lent {
 public:
  Lent(Call& call, const ltc_sink* sink);
  ~Lent();
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;
  const ltc_sink* get() const { return &sink_; }
  bool refused() const { return object_ && object_->refused; }

 private:
  Sink* object_ = nullptr;
  ltc_sink sink_{};
};

}  // namespace ltc::host::validation
