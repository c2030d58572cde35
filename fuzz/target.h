// A fuzz target: one reader of bytes from outside. Each target gives the first two functions; target.cpp hands them to libFuzzer,
// main.cpp replays a corpus without it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ltc::fuzz {

// Whether the reader takes the bytes. A refusal is one of the reader's own errors: any other exception ends the process.
bool accept(std::string_view input);

// Made by the writers of this build, so they follow a change of format. The reader takes each.
std::vector<std::string> sound_inputs();

// Ends the process where a property does not hold.
void require(bool holds, const char* property);

// Takes the first byte off: whether it is odd. An empty input gives false.
bool take_flag(std::string_view& input);

}  // namespace ltc::fuzz
