// The user's Python line of every op that is recorded (ir/location.h).
#pragma once

#include <string>
#include <vector>

namespace ltc {

// From now on. `library_folders`: folders and files (.py) whose lines are not the user's: of PyTorch and of this package.
// LTC_STACKS=1: the whole stack instead of a line.
void record_source_lines(std::vector<std::string> library_folders);

// Gives this line to the ops that the calling thread records from now on; empty: the line of its own program again.
void set_known_line(std::string_view line);

}  // namespace ltc
