// The patches of function pointers of PyTorch's and CPython's objects. The table of all patches is __init__.py.
#pragma once

#include <Python.h>

#include <span>
#include <utility>

namespace ltc {

// Both functions need the GIL.
struct NativePatch {
  const char* name;
  bool (*install)();    // false if what is to be patched does not look as expected; nothing has changed then
  bool (*uninstall)();  // false if somebody else has patched the same place since; the patch stays then
};

extern const NativePatch kDealloc, kTensorTo, kDeviceType, kRecordFunction, kOperators;

std::span<const NativePatch* const> native_patches();

// A pointer of somebody else's object, such as a slot of a type, that is replaced. The object must live as long as the process.
template <class Pointer>
class Slot {
 public:
  bool install(Pointer* place, Pointer own) {
    if (!place || !*place) return false;
    place_ = place;
    own_ = own;
    original_ = std::exchange(*place, own);
    return true;
  }

  bool uninstall() {
    if (!is_there()) return false;
    *std::exchange(place_, nullptr) = original_;
    return true;
  }

  bool is_there() const { return place_ && *place_ == own_; }  // installed, and nobody has replaced it since
  Pointer original() const { return original_; }               // also after uninstall(): a call may be on its way

 private:
  Pointer* place_ = nullptr;
  Pointer own_ = nullptr, original_ = nullptr;
};

// Where a method of torch.Tensor that PyTorch defines keeps what a call runs. A patch of it leaves the method the object that it
// is, so that comparing or overriding it works as before. Null if torch.Tensor has no such method.
vectorcallfunc* call_of_tensor_method(const char* name);

}  // namespace ltc
