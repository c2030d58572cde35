// The text of maths.h, for kernels that are compiled at run time.
#pragma once

namespace ltc::kernels {

extern const char kMathsText[];

}  // namespace ltc::kernels
