// Calls of libtorch's kernels that nobody intercepts.
#pragma once
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace ltc::torchscript {

// While one lives, dispatch in the calling thread is as if nobody had changed it. That may be in the middle of anything.
struct QuietDispatch {
  c10::InferenceMode inference;
  c10::impl::ExcludeDispatchKeyGuard exclude{c10::autocast_dispatch_keyset | c10::python_ks};
};

}  // namespace ltc::torchscript
