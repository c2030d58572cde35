#include "abi/boundary.h"

#include <cstdio>

namespace ltc::abi {
namespace {

constexpr ltc_version kVersion{LTC_ABI_MAJOR, LTC_ABI_MINOR};

bool is_older(ltc_version a, ltc_version b) { return a.major != b.major ? a.major < b.major : a.minor < b.minor; }

}  // namespace

bool agree(ltc_entry_args* args, const char* plugin_name) {
  const ltc_version oldest = args->oldest, newest = args->newest;
  args->oldest = args->newest = kVersion;
  if (is_older(kVersion, oldest) || is_older(newest, kVersion)) {
    static thread_local char reason[128];
    std::snprintf(reason, sizeof reason, "%s speaks plugin ABI %u.%u, the host %u.%u to %u.%u", plugin_name, kVersion.major,
                  kVersion.minor, oldest.major, oldest.minor, newest.major, newest.minor);
    args->reason = reason;
    return false;
  }
  args->agreed = kVersion;
  return true;
}

void check_extensions(const ltc_extension* first) {
  for (auto* extension = first; extension; extension = extension->next) {
    if (extension->kind & LTC_EXTENSION_REQUIRED) {
      throw Failure(LTC_UNSUPPORTED, "unknown extension of kind " + std::to_string(extension->kind));
    }
  }
}

void refuse_options(size_t count, const ltc_option* const* options) {
  if (count == 0) return;
  throw Failure(LTC_INVALID_ARGUMENT, "unknown option '" + std::string(view(options[0]->name)) + "'; there are none");
}

void check_transfer(const ltc_transfer_args& args) {
  check_extensions(args.ext);
  if (args.direction < LTC_TO_DEVICE || args.direction > LTC_ON_DEVICE) {
    throw Failure(LTC_UNSUPPORTED, "[transfer] unknown direction " + std::to_string(args.direction));
  }
  if (args.flags & ~uint32_t{LTC_HOST_DATA_UNTIL_RETURN}) {
    throw Failure(LTC_UNSUPPORTED, "[transfer] unknown flags " + std::to_string(args.flags));
  }
  const bool to_device = args.direction == LTC_TO_DEVICE, from_device = args.direction == LTC_FROM_DEVICE;
  if (!args.buffer) {
    throw Failure(LTC_INVALID_ARGUMENT, from_device ? "[transfer] no source buffer" : "[transfer] no target buffer");
  }
  if (args.direction == LTC_ON_DEVICE && !args.source) throw Failure(LTC_INVALID_ARGUMENT, "[transfer] no source buffer");
  const bool no_memory = (to_device && !args.from) || (from_device && !args.to);
  if (args.size_bytes > 0 && no_memory) {
    throw Failure(LTC_INVALID_ARGUMENT, "[transfer] no host memory for " + std::to_string(args.size_bytes) + " bytes");
  }
}

void check_range(const char* role, uint64_t offset, uint64_t size, uint64_t buffer_bytes) {
  if (offset <= buffer_bytes && size <= buffer_bytes - offset) return;
  throw Failure(LTC_INVALID_ARGUMENT, "[transfer] " + std::to_string(size) + " bytes at offset " + std::to_string(offset) +
                                          " leave the " + role + " buffer's " + std::to_string(buffer_bytes) + " bytes");
}

void check_count(const char* what, size_t given, size_t compiled) {
  if (given == compiled) return;
  throw Failure(LTC_INVALID_ARGUMENT,
                "[execute] " + std::to_string(given) + " " + what + " given, " + std::to_string(compiled) + " compiled");
}

}  // namespace ltc::abi
