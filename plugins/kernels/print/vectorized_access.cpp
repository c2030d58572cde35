#include "kernels/print/vectorized_access.h"

#include <algorithm>

#include "kernels/graph/dtype.h"

namespace ltc::kernels {
namespace {

constexpr int64_t kAccessBytes = 16;
constexpr int64_t kMostElements = 8;

// Whether the elements of a pack lie side by side, the first at a multiple of the pack's size. Buffers begin aligned.
bool is_packed(const Index& index, const Kernel& kernel, int64_t pack) {
  if (index.constant % pack != 0) return false;
  int64_t side_by_side = 0;
  for (const Term& term : index.terms) {
    const Digit& digit = term.digit;
    if (digit.var != kernel.item) return false;
    const bool counts = term.factor == 1 && digit.div == 1 && digit.mod % pack == 0;
    const bool stands = term.factor % pack == 0 && digit.div % pack == 0;
    if (!counts && !stands) return false;
    side_by_side += counts;
  }
  return side_by_side == 1;
}

bool is_packed(const Inst& inst, const Kernel& kernel, int64_t pack) {
  const bool load = inst.code == Code::kLoad && inst.args.empty() && inst.of == inst.dtype;
  const bool store = inst.code == Code::kStore && inst.args.size() == 1;
  return (load || store) && is_packed(inst.index, kernel, pack);
}

std::string pack_type(ltc_dtype dtype, int64_t pack) {
  return "ltc_pack<" + std::string(facts(dtype).name) + ", " + std::to_string(pack) + ">";
}

}  // namespace

int64_t pack_of(const Kernel& kernel, int64_t device_threads) {
  if (kernel.blocks.size() > 1 || kernel.item_count() < device_threads) return 1;
  int64_t widest = 1;
  for (const KernelBuffer& buffer : kernel.buffers) widest = std::max<int64_t>(widest, facts(buffer.dtype).bytes);
  const int64_t pack = std::min(kAccessBytes / widest, kMostElements);
  const bool any = std::ranges::any_of(kernel.insts, [&](const Inst& inst) { return is_packed(inst, kernel, pack); });
  return any ? pack : 1;
}

std::string pack_statements(const Kernel& kernel, int64_t pack, const ScalarText& scalar) {
  std::string loads, body, stores;
  for (const Ref ref : kernel.blocks[0].insts) {
    const Inst& inst = kernel.insts[ref];
    if (!is_packed(inst, kernel, pack)) {
      body += "      " + scalar.statement(ref) + "\n";
      continue;
    }
    const std::string type = pack_type(inst.dtype, pack), all = "p" + std::to_string(ref), value = "v" + std::to_string(ref);
    const std::string place = "(b" + std::to_string(inst.slot) + " + " + scalar.index(inst.index) + ")";
    if (inst.code == Code::kLoad) {
      loads += "    const " + type + " " + all + " = *(const " + type + "*)" + place + ";\n";
      body += "      const " + std::string(facts(inst.dtype).name) + " " + value + " = " + all + ".x[k];\n";
    } else {
      loads += "    " + type + " " + all + ";\n";
      body += "      " + all + ".x[k] = v" + std::to_string(inst.args[0]) + ";\n";
      stores += "    *(" + type + "*)" + place + " = " + all + ";\n";
    }
  }
  return "    const ix i0 = begin;\n" + loads + "    #pragma unroll\n    for (i32 k = 0; k < " + std::to_string(pack) +
         "; ++k) {\n      const ix i0 = begin + k;\n" + body + "    }\n" + stores;
}

}  // namespace ltc::kernels
