/* As a vendor's C compiler sees it. Compiling is the test; running it checks what only a value can show. */
#include "layout.h"
#include "ltc/entry.h"

static ltc_plugin_api shorter; /* a table of a side that knew nothing behind `transfer` */
static ltc_device_info older;  /* one that ends at `memory_bytes`; behind it lies something else */

int main(void) {
  shorter.struct_size = LTC_SIZE_TO(ltc_plugin_api, transfer);
  if (!LTC_HAS(&shorter, ltc_plugin_api, transfer)) return 1;
  if (LTC_HAS(&shorter, ltc_plugin_api, claims)) return 2;
  older.struct_size = LTC_SIZE_TO(ltc_device_info, memory_bytes);
  older.memory_bytes = older.flags = 7;
  if (LTC_GET(&shorter, ltc_plugin_api, claims) || LTC_GET(&older, ltc_device_info, flags) != 0) return 3;
  if (LTC_GET(&older, ltc_device_info, memory_bytes) != 7) return 4;
  return LTC_NONE == UINT32_MAX ? 0 : 5;
}
