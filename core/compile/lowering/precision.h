// How far products and convolutions may round on their way, by the program's flags (LTC_PRODUCTS_IN_TF32 and its kind). The flags
// are a part of a program's identity on devices whose plugin asks for them.
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
