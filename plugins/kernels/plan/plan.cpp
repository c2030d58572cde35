#include "kernels/plan/plan.h"

namespace ltc::kernels {

ValueId Plan::add_work(ltc_dtype dtype, const Sizes& sizes) {
  fusion.is_stored.push_back(true);
  return graph.add_value(dtype, sizes);
}

}  // namespace ltc::kernels
