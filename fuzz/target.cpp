#include "fuzz/target.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace ltc::fuzz {

void require(bool holds, const char* property) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", property);
  std::abort();
}

bool take_flag(std::string_view& input) {
  if (input.empty()) return false;
  const bool flag = input[0] & 1;
  input.remove_prefix(1);
  return flag;
}

}  // namespace ltc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ltc::fuzz::accept({reinterpret_cast<const char*>(data), size});
  return 0;
}
