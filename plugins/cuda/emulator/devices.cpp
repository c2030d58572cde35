// Devices, contexts, errors, modules and launches.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

#include "cuda/emulator/state.h"

namespace ltc::emulator {
namespace {

struct ErrorRow {
  CUresult error;
  const char *name, *text;
};
#define LTC_ERROR(name, text) \
  { name, #name, text }
constexpr ErrorRow kErrors[] = {
    LTC_ERROR(CUDA_SUCCESS, "no error"),
    LTC_ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    LTC_ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    LTC_ERROR(CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA-capable device(s) is/are busy or unavailable"),
    LTC_ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    LTC_ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    LTC_ERROR(CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
    LTC_ERROR(CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"),
    LTC_ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    LTC_ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    LTC_ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
    LTC_ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    LTC_ERROR(CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
    LTC_ERROR(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"),
    LTC_ERROR(CUDA_ERROR_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered"),
    LTC_ERROR(CUDA_ERROR_HARDWARE_STACK_ERROR, "hardware stack error"),
    LTC_ERROR(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    LTC_ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
};
#undef LTC_ERROR

const ErrorRow* row_of(CUresult error) {
  for (const ErrorRow& row : kErrors) {
    if (row.error == error) return &row;
  }
  return nullptr;
}

// Without a destructor: a process that ends calls after those of the thread.
thread_local CUctx_st* pushed[16];
thread_local int depth = 0;

CUctx_st& context_of(CUdevice device) {
  require(device >= 0 && static_cast<size_t>(device) < state().contexts.size(), CUDA_ERROR_INVALID_DEVICE);
  return state().contexts[static_cast<size_t>(device)];
}

void check_not_lost(const CUctx_st& context) { require(!context.loss.has_happened, context.loss.error); }

int attribute_of(CUdevice_attribute attribute) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return state().capability / 10;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return state().capability % 10;
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: return 1;
    default:
      throw Fault{CUDA_ERROR_INVALID_VALUE, "the attribute " + std::to_string(attribute) + " is not known to the emulator"};
  }
}

// Variables of a module live as long as the process, as few have any.
CUdeviceptr place_variable(const Variable& variable, void* context) {
  Allocation* made = state().memory.allocate(static_cast<CUctx_st*>(context)->device, variable.bytes.size(), 0);
  require(made != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
  state().memory.begin(*made);
  std::memcpy(reinterpret_cast<void*>(made->begin), variable.bytes.data(), variable.bytes.size());
  return made->begin;
}

}  // namespace

CUctx_st& current_context() {
  require(depth > 0, CUDA_ERROR_INVALID_CONTEXT);
  check_context(*pushed[depth - 1]);
  return *pushed[depth - 1];
}

// The libraries of the tests find cuLaunchHostFunc among the symbols of the process.
LTC_EMULATED cuInit(unsigned flags) {
  return answer([&] {
    require(flags == 0);
    Dl_info info{};
    if (dladdr(reinterpret_cast<void*>(&cuInit), &info)) dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
  });
}
LTC_EMULATED cuDriverGetVersion(int* version) {
  return answer([&] { *version = 13000; });
}
LTC_EMULATED cuGetErrorName(CUresult error, const char** text) {
  const ErrorRow* row = row_of(error);
  *text = row ? row->name : nullptr;
  return row ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
LTC_EMULATED cuGetErrorString(CUresult error, const char** text) {
  const ErrorRow* row = row_of(error);
  *text = row ? row->text : nullptr;
  return row ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

LTC_EMULATED cuDeviceGetCount(int* count) {
  return answer([&] { *count = static_cast<int>(state().contexts.size()); });
}
LTC_EMULATED cuDeviceGet(CUdevice* device, int ordinal) {
  return answer([&] { *device = context_of(ordinal).device; });
}
LTC_EMULATED cuDeviceGetName(char* name, int length, CUdevice device) {
  return answer([&] { std::snprintf(name, static_cast<size_t>(length), "emulator %d", context_of(device).device); });
}
LTC_EMULATED cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return answer([&] {
    context_of(device);
    *value = attribute_of(attribute);
  });
}
LTC_EMULATED cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  return answer([&] {
    context_of(device);
    *bytes = state().memory.limit();
  });
}
LTC_EMULATED cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  return answer([&] { *can = &context_of(device) != &context_of(peer); });
}

// For tests: the launch after so many more loses the device. Every call that needs it then answers the error, until its last user
// has released it. `for_good`: nobody opens it any more. CUDA_SUCCESS takes the loss back, for who opens the device next.
extern "C" __attribute__((visibility("default"))) void ltc_emulator_lose_device(int device, uint64_t launches, CUresult error,
                                                                                int for_good) {
  const std::lock_guard guard(state().lock);
  state().contexts.at(static_cast<size_t>(device)).loss = {error, launches, for_good != 0};
}

LTC_EMULATED cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return answer([&] {
    CUctx_st& found = context_of(device);
    check_not_lost(found);
    ++found.users;
    *context = &found;
  });
}
LTC_EMULATED cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return answer([&] {
    CUctx_st& context = context_of(device);
    require(context.users > 0, CUDA_ERROR_INVALID_CONTEXT);
    if (--context.users > 0) return;
    context.error = CUDA_SUCCESS;
    if (!context.loss.for_good) context.loss = {};
  });
}
LTC_EMULATED cuCtxPushCurrent_v2(CUcontext context) {
  return answer([&] {
    require(context && context->users > 0 && depth < 16, CUDA_ERROR_INVALID_CONTEXT);
    check_not_lost(*context);
    pushed[depth++] = context;
  });
}
LTC_EMULATED cuCtxPopCurrent_v2(CUcontext* context) {
  return answer([&] {
    require(depth > 0, CUDA_ERROR_INVALID_CONTEXT);
    *context = pushed[--depth];
  });
}

LTC_EMULATED cuModuleLoadData(CUmodule* module, const void* image) {
  return answer([&] {
    CUctx_st& context = current_context();
    const auto* text = static_cast<const char*>(image);
    // Machine code, which no emulator runs, begins as ELF does.
    require(std::memcmp(text,
                        "\x7f"
                        "ELF",
                        4) != 0,
            CUDA_ERROR_NO_BINARY_FOR_GPU);
    auto made = std::make_unique<CUmod_st>();
    made->context = &context;
    made->module = parse(text, place_variable, &context);
    if (made->module->shared_bytes > kMostSharedBytes)
      throw Fault{CUDA_ERROR_INVALID_PTX, "a module has more than 48 KiB of shared memory"};
    for (auto& [name, function] : made->module->functions) {
      for (const Instruction& in : function->code) ++state().uses[*in.name];
      if (function->is_entry) made->functions[name] = {made.get(), function.get()};
    }
    *module = made.release();
  });
}
// For tests: how many instructions of this name the loaded modules have, or how often a function was called.
extern "C" __attribute__((visibility("default"))) uint64_t ltc_emulator_uses(const char* name) {
  const std::lock_guard guard(state().lock);
  return state().uses[name];
}
LTC_EMULATED cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return answer([&] {
    const auto it = module->functions.find(name);
    require(it != module->functions.end(), CUDA_ERROR_NOT_FOUND);
    *function = &it->second;
  });
}
// Launches that were submitted still need it, so what waits runs first.
LTC_EMULATED cuModuleUnload(CUmodule module) {
  return answer([&] {
    for (const std::weak_ptr<Stream>& weak : state().streams) {
      const StreamRef stream = weak.lock();
      if (stream && stream->context == module->context) state().run(*stream, stream->submitted);
    }
    delete module;
  });
}
LTC_EMULATED cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                            unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void** params,
                            void** extra) {
  return answer([&] {
    require(!extra && stream);
    require(function && function->module->context == stream->stream->context, CUDA_ERROR_INVALID_HANDLE);
    KernelCall call = kernel_call(function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, params);
    state().submit(stream->stream, [call = std::move(call)] { state().run_kernel(call); });
  });
}

}  // namespace ltc::emulator
