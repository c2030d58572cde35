/* Extension 1: where matrix products and convolutions may round more than their types say.
 *
 * The host chains one into ltc_lower_args::ext for a plugin that lists the kind in ltc_plugin_api::ext. Its permissions are part
 * of the identity of the program: a graph that is compiled again with other permissions is another program. A plugin that does
 * not list the kind computes as it chooses. */
#ifndef LTC_PRECISION_H
#define LTC_PRECISION_H
#include "ltc/plugin.h"

#define LTC_EXTENSION_PRECISION 1u

/* Permissions, never orders: one that the plugin does not know, or has no use for, it leaves alone. */
enum {
  LTC_PRODUCTS_IN_TF32 = 1u,     /* operands of products of F32 may be rounded to TF32: 10 bits behind the point */
  LTC_CONVOLUTIONS_IN_TF32 = 2u, /* those of convolutions of F32 */
  LTC_PARTIAL_SUMS_IN_F16 = 4u,  /* products of F16 may be added up in parts that are rounded to F16 */
  LTC_PARTIAL_SUMS_IN_BF16 = 8u  /* the same of BF16 */
};

typedef struct ltc_precision {
  ltc_extension head; /* kind LTC_EXTENSION_PRECISION, version 1 */
  uint32_t allowed;   /* LTC_PRODUCTS_IN_TF32 and its kind */
} ltc_precision;

#endif /* LTC_PRECISION_H */
