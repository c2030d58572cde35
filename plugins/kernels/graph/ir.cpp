#include "kernels/graph/ir.h"

namespace ltc::kernels {

Builder::Builder(Kernel& kernel, int64_t item_count) : kernel_(kernel) {
  kernel_.blocks.push_back({});
  kernel_.item = kernel_.space.add({Var::Kind::kLoop, item_count, {}, 1, 0});
  kernel_.blocks[0].var = kernel_.item;
  var_home_.assign(1, 0);
}

Ref Builder::add_in(BlockId block, Inst inst) {
  for (const Ref arg : inst.args) block = inner(block, home_[arg]);
  block = inner(block, block_of(inst.index));
  kernel_.insts.push_back(std::move(inst));
  home_.push_back(block);
  const Ref ref = static_cast<Ref>(kernel_.insts.size() - 1);
  kernel_.blocks[block].insts.push_back(ref);
  return ref;
}

Ref Builder::add(Inst inst) { return add_in(0, std::move(inst)); }

uint32_t Builder::buffer(uint32_t value, ltc_dtype dtype, bool written) {
  for (uint32_t i = 0; i < kernel_.buffers.size(); ++i) {
    if (kernel_.buffers[i].value != value) continue;
    kernel_.buffers[i].written |= written;
    return i;
  }
  kernel_.buffers.push_back({value, dtype, written});
  return static_cast<uint32_t>(kernel_.buffers.size() - 1);
}

uint32_t Builder::scalar(uint32_t value, ltc_dtype dtype) {
  for (uint32_t i = 0; i < kernel_.scalars.size(); ++i) {
    if (kernel_.scalars[i].value == value) return i;
  }
  kernel_.scalars.push_back({value, dtype});
  return static_cast<uint32_t>(kernel_.scalars.size() - 1);
}

BlockId Builder::open_loop(BlockId parent, int64_t extent) {
  Block block{parent, kernel_.blocks[parent].depth + 1, kernel_.space.add({Var::Kind::kLoop, extent, {}, 1, 0}), {}};
  kernel_.blocks.push_back(block);
  const auto id = static_cast<BlockId>(kernel_.blocks.size() - 1);
  var_home_.resize(kernel_.space.size(), kNoRef);
  var_home_[block.var] = id;
  return id;
}

void Builder::close_loop(BlockId loop) { add_in(kernel_.blocks[loop].parent, {.code = Code::kLoop, .slot = loop}); }

BlockId Builder::block_of_var(VarId var) {
  if (var >= var_home_.size()) var_home_.resize(kernel_.space.size(), kNoRef);
  if (var_home_[var] == kNoRef) {
    const Index of = kernel_.space.var(var).of;
    const Ref ref = add({.code = Code::kVar, .dtype = LTC_I64, .index = of, .slot = var});
    var_home_[var] = home_[ref];
  }
  return var_home_[var];
}

BlockId Builder::block_of(const Index& index) {
  BlockId block = 0;
  for (const Term& term : index.terms) block = inner(block, block_of_var(term.digit.var));
  return block;
}

Index Builder::data_index(Ref value, int64_t extent) {
  const VarId var = kernel_.space.add({Var::Kind::kData, extent, {}, 1, value});
  const Ref ref = add({.code = Code::kVar, .dtype = LTC_I64, .args = {value}, .slot = var});
  var_home_.resize(kernel_.space.size(), kNoRef);
  var_home_[var] = home_[ref];
  return kernel_.space.of_var(var);
}

std::string variable_name(VarId var) {
  const bool names_type = var == 8 || var == 16 || var == 32 || var == 64;
  return "i" + std::to_string(var) + (names_type ? "_" : "");
}

}  // namespace ltc::kernels
