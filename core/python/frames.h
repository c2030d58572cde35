// Where in the user's Python program the calling thread is, cheap enough to be asked for every op.
#pragma once

#include <string>
#include <vector>

#include "core/ir/location.h"

namespace ltc {

struct PythonPlace {
  LocationId line = kNoLocation;  // of the innermost frame of the user's
  bool in_engine = false;         // the innermost frame of all is PyTorch's call of its autograd engine
};

// To be called once, before the others. Frames of files in these folders, and of these files (.py), are not the user's.
void set_library_folders(std::vector<std::string> folders);

// About 10 ns where the lines were met before. Needs no GIL, and takes it for a line that was not. Nothing in a thread that
// Python does not know, or where this was built for a Python whose frames it does not know.
PythonPlace python_place();

// All frames, the innermost first: "model.py:12 in forward, from train.py:31 in step, from ...". Takes the GIL; microseconds.
LocationId python_stack();

// The frames of libraries inside the user's innermost one: "torch/_tensor_str.py in _str, torch/_tensor.py in __repr__". The
// same.
LocationId python_callers();

}  // namespace ltc
