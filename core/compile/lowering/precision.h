// What the program lets products and convolutions round on their way (LTC_PRODUCTS_IN_TF32 and its kind): part of what a program
// is identified by on devices whose plugin asks for it.
#pragma once

#include <cstdint>

namespace ltc {

namespace host {
class PluginDevice;
}

// As PyTorch's flags say at this moment. Installed by the part of the core that knows them.
using ReadPrecision = uint32_t (*)();
void set_read_precision(ReadPrecision read);

// 0 where the plugin does not ask, which costs a load.
uint32_t precision_for(const host::PluginDevice& device);

}  // namespace ltc
