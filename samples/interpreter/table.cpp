// The ops of this plugin.
#include "ops.h"

namespace interpreter {

const std::vector<const Table*> tables = {&elementwise_ops, &conversion_ops, &movement_ops, &creation_ops,
                                          &reduction_ops,   &index_ops,      &product_ops};

}  // namespace interpreter
