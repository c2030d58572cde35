// Memory pools, pinned memory and copies.
#include <cstdlib>
#include <cstring>

#include "cuda/emulator/state.h"

namespace ltc::emulator {
namespace {

void check_range(int device, CUdeviceptr address, size_t bytes, const char* what) {
  std::string why;
  if (state().memory.holder(device, address, bytes, &why)) return;
  throw Fault{CUDA_ERROR_ILLEGAL_ADDRESS, std::string(what) + " of " + std::to_string(bytes) + " bytes: " + why};
}

void copy_on_device(CUdeviceptr to, int to_device, CUdeviceptr from, int from_device, size_t bytes) {
  check_range(to_device, to, bytes, "a copy to memory of a device");
  check_range(from_device, from, bytes, "a copy from memory of a device");
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
}

void check_pinned(const void* memory, size_t bytes) {
  if (state().is_pinned(memory, bytes)) return;
  throw Fault{CUDA_ERROR_ILLEGAL_ADDRESS, "a copy of " + std::to_string(bytes) + " bytes of pinned memory that is there no more"};
}

}  // namespace

LTC_EMULATED cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  return answer([&] {
    require(properties->allocType == CU_MEM_ALLOCATION_TYPE_PINNED && properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE);
    require(properties->location.id >= 0 && static_cast<size_t>(properties->location.id) < state().contexts.size());
    *pool = new CUmemPoolHandle_st{properties->location.id, 0};
  });
}
LTC_EMULATED cuMemPoolDestroy(CUmemoryPool pool) {
  return answer([&] { delete pool; });
}
LTC_EMULATED cuMemPoolTrimTo(CUmemoryPool pool, size_t) {
  return answer([&] { require(pool != nullptr); });
}
LTC_EMULATED cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* access, size_t count) {
  return answer([&] {
    for (size_t i = 0; i < count; ++i) {
      const CUmemLocation& reader = access[i].location;
      require(reader.type == CU_MEM_LOCATION_TYPE_DEVICE && reader.id >= 0 && reader.id != pool->device);
      require(static_cast<size_t>(reader.id) < state().contexts.size(), CUDA_ERROR_INVALID_DEVICE);
      pool->readers |= 1U << reader.id;
      state().memory.admit(pool->device, reader.id);
    }
  });
}

// The address is known at once; the memory is there for what comes later in the stream.
LTC_EMULATED cuMemAllocFromPoolAsync(CUdeviceptr* memory, size_t bytes, CUmemoryPool pool, CUstream stream) {
  return answer([&] {
    require(current_context().device == pool->device, CUDA_ERROR_INVALID_CONTEXT);
    require(bytes > 0);
    Allocation* made = state().memory.allocate(pool->device, bytes, pool->readers);
    require(made != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
    *memory = made->begin;
    state().submit(stream->stream, [made] { state().memory.begin(*made); });
  });
}
LTC_EMULATED cuMemFreeAsync(CUdeviceptr memory, CUstream stream) {
  return answer([&] {
    Allocation* found = state().memory.at(memory);
    if (!found || found->given_back) throw Fault{CUDA_ERROR_INVALID_VALUE, "memory is given back that is not there"};
    found->given_back = true;
    state().submit(stream->stream, [found] { state().memory.release(*found); });
  });
}

LTC_EMULATED cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  return answer([&] {
    current_context();
    *memory = std::malloc(bytes ? bytes : 1);
    require(*memory != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
    std::memset(*memory, 0xff, bytes);
    state().pinned[reinterpret_cast<uint64_t>(*memory)] = bytes;
  });
}
LTC_EMULATED cuMemFreeHost(void* memory) {
  return answer([&] {
    require(state().pinned.erase(reinterpret_cast<uint64_t>(memory)) == 1);
    std::free(memory);
  });
}

// Pinned memory is read when the copy runs. Other memory is read before the call returns.
LTC_EMULATED cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return answer([&] {
    const int device = stream->stream->context->device;
    if (state().is_pinned(from, bytes)) {
      return state().submit(stream->stream, [=] {
        check_pinned(from, bytes);
        check_range(device, to, bytes, "a copy to the device");
        std::memcpy(reinterpret_cast<void*>(to), from, bytes);
      });
    }
    const auto* begin = static_cast<const std::byte*>(from);
    state().submit(stream->stream, [=, data = std::vector<std::byte>(begin, begin + bytes)] {
      check_range(device, to, bytes, "a copy to the device");
      std::memcpy(reinterpret_cast<void*>(to), data.data(), bytes);
    });
  });
}
// Memory that is not pinned has its bytes when the call returns.
LTC_EMULATED cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return answer([&] {
    const StreamRef& queue = stream->stream;
    const int device = queue->context->device;
    const bool pinned = state().is_pinned(to, bytes);
    state().submit(queue, [=] {
      if (pinned) check_pinned(to, bytes);
      check_range(device, from, bytes, "a copy from the device");
      std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
    });
    if (pinned || queue->capture) return;
    state().run(*queue, queue->submitted);
    check_context(*queue->context);
  });
}
LTC_EMULATED cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return answer([&] {
    const int device = stream->stream->context->device;
    state().submit(stream->stream, [=] { copy_on_device(to, device, from, device, bytes); });
  });
}
LTC_EMULATED cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
                               CUstream stream) {
  return answer([&] {
    require(to_context && from_context, CUDA_ERROR_INVALID_CONTEXT);
    state().submit(stream->stream, [=] { copy_on_device(to, to_context->device, from, from_context->device, bytes); });
  });
}

}  // namespace ltc::emulator
