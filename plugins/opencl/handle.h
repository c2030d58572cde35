// OpenCL objects that release themselves.
#pragma once
#include <CL/cl.h>

#include <utility>

namespace ltc::opencl {

template <typename T, cl_int (*kRelease)(T), cl_int (*kRetain)(T)>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T object) : object_(object) {}  // takes over the reference
  Handle(const Handle& other) : object_(other.object_) {
    if (object_) kRetain(object_);
  }
  Handle(Handle&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Handle& operator=(Handle other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Handle() {
    if (object_) kRelease(object_);
  }
  T get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T object_ = nullptr;
};

using Context = Handle<cl_context, clReleaseContext, clRetainContext>;
using Queue = Handle<cl_command_queue, clReleaseCommandQueue, clRetainCommandQueue>;
using Memory = Handle<cl_mem, clReleaseMemObject, clRetainMemObject>;
using ClProgram = Handle<cl_program, clReleaseProgram, clRetainProgram>;
using ClKernel = Handle<cl_kernel, clReleaseKernel, clRetainKernel>;
using ClEvent = Handle<cl_event, clReleaseEvent, clRetainEvent>;

}  // namespace ltc::opencl
