#include "core/ops/op_table.h"

namespace ltc {

std::string_view op_doc(const OpRow& row) {
  static constexpr std::string_view kDocs[] = {
#define LTC_OP(id, schema, tier, flags, static_args, doc) doc,
#include "core/ops/op_table.inc"
#undef LTC_OP
  };
  return kDocs[&row - op_rows().data()];
}

}  // namespace ltc
