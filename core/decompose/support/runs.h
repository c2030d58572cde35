// Runs of equal keys along a dim.
#pragma once

#include "core/decompose/support/value.h"

namespace ltc::decompose {

using Join = Val (*)(Val, Val);  // associative

// At each place what `join` makes of its run from the beginning to there, by doubling.
Val scan_runs(Val x, Val keys, int64_t dim, Join join);

// ... of the whole run.
Val join_runs(Val x, Val keys, int64_t dim, Join join);

}  // namespace ltc::decompose
