// x less its mean, by its deviation: what every normalisation begins with.
#pragma once

#include "core/decompose/support/value.h"

namespace ltc::decompose {

struct Normalized {
  Val y, mean, rstd;  // mean and rstd with dims of size 1
};

Normalized normalize(Val x, const Ints& dims, Val eps);

}  // namespace ltc::decompose
