#include "abi/boundary.h"

namespace ltc::abi {
void check_transfer(const ltc_transfer_args& args) {
  if (args.direction < LTC_TO_DEVICE || args.direction > LTC_ON_DEVICE) {
    throw Failure(LTC_UNSUPPORTED, "[transfer] unknown direction " + std::to_string(args.direction));
  }
  if (args.flags != 0) {
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
