#pragma once

namespace ltc::conformance {

// Adds the checks of the tiers ops and programs, one per op and dtype, to GoogleTest's. Before any test runs.
void register_ops();

}  // namespace ltc::conformance
