// ltc.export from Python: a capture of one call, as an archive keeps it.
#pragma once

#include <pybind11/pybind11.h>

namespace ltc {

void bind_exports(pybind11::module_& m);

}  // namespace ltc
