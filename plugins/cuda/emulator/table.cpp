#include "cuda/emulator/table.h"

namespace ltc::emulator {

Table::Table() {
  for (const auto add_rows : {add_integers, add_bits, add_floats, add_functions, add_halves, add_comparisons, add_conversions,
                              add_accesses, add_atomics, add_control, add_warps, add_tensor_cores}) {
    add_rows(*this);
  }
}

const Table& Table::instance() {
  static const Table* const table = new Table;  // a process that ends may still load modules
  return *table;
}

}  // namespace ltc::emulator
