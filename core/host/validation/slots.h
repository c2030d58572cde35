// The layer's slots, and its functions for the plugin. Each checks its arguments, calls the other side, and checks the answer.
#pragma once

#include "ltc/plugin.h"

namespace ltc::host::validation {

struct Instance;

// Fill Instance::table where the plugin's table has a slot.
void set_memory_slots(Instance& instance);
void set_program_slots(Instance& instance);
void set_run_slots(Instance& instance);

// Fills Instance::collectives, for a plugin that has them.
void set_group_functions(Instance& instance);

void set_host_functions(Instance& instance);

}  // namespace ltc::host::validation
