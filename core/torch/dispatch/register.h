// The boxed recorder for all ops, those of other libraries included.
#pragma once

namespace ltc {

// Gives every op of the device a kernel that has none of its own. To be called once, when the static objects of the library are
// made: they register the ops that have one.
void register_all_ops();

}  // namespace ltc
