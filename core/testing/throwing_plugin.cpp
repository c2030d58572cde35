// The test plugin with slots that let C++ exceptions out, which no plugin may do. LTC_TEST_THROWS_LATE: only what runs after a
// program is compiled.
#include <stdexcept>

#include "ltc/plugin.h"

extern "C" bool ltc_test_inner_entry(ltc_entry_args* args);

namespace {

ltc_status* throwing_execute(ltc_device*, const ltc_execute_args*, ltc_buffer**, ltc_event**) {
  throw std::runtime_error("no luck today");
}

[[maybe_unused]] ltc_status* throwing_claims(ltc_device*, const ltc_claims_args*, uint32_t*) { throw 42; }

void (*inner_program_destroy)(ltc_program*);

void throwing_program_destroy(ltc_program* program) {
  inner_program_destroy(program);
  throw std::runtime_error("cannot let go");
}

}  // namespace

extern "C" bool ltc_plugin_entry(ltc_entry_args* args) {
  if (!ltc_test_inner_entry(args)) return false;
  static const ltc_plugin_api table = [&] {
    ltc_plugin_api changed = *args->api;
    inner_program_destroy = changed.program_destroy;
    changed.execute = throwing_execute;
#ifndef LTC_TEST_THROWS_LATE
    changed.claims = throwing_claims;
#endif
    changed.program_destroy = throwing_program_destroy;
    return changed;
  }();
  args->api = &table;
  return true;
}
