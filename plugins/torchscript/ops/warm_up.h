// Kernels that most programs run, once ahead of the first program.
#pragma once

namespace ltc::torchscript {

// Runs them on small tensors in the calling thread: libraries behind them set themselves up in their first call, and their code
// comes into memory. The kernels are those of the CPU. Once in a process; later calls do nothing. Throws nothing.
void warm_up_kernels() noexcept;

}  // namespace ltc::torchscript
