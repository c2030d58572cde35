// A model of another engine behind the front end of `ltc serve`, so that bench/serving.py compares engines alone.
#pragma once

#include <string>

#include "core/serve/scheduler.h"

namespace ltc::bench {

// The model in that file, as a worker runs it: one thread, results written into memory of the caller's. Inputs and results are
// those of `function`, in its order. Throws std::exception where the file cannot be loaded.
serve::Runner make_runner(const std::string& path, const serve::ServedFunction& function);

}  // namespace ltc::bench
