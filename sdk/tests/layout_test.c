/* As a vendor's C compiler sees it. Compiling is the test; running it checks what only a value can show. */
#include "layout.h"

static ltc_plugin_api shorter; /* a table of a side that knew nothing behind `transfer` */

int main(void) {
  shorter.struct_size = LTC_SIZE_TO(ltc_plugin_api, transfer);
  if (!LTC_HAS(&shorter, ltc_plugin_api, transfer)) return 1;
  if (LTC_HAS(&shorter, ltc_plugin_api, claims)) return 2;
  return LTC_NONE == UINT32_MAX ? 0 : 3;
}
