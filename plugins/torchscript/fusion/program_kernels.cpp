#include "torchscript/fusion/program_kernels.h"

#include <algorithm>

#include "kernels/print/render.h"
#include "torchscript/fusion/tile_program.h"

namespace ltc::torchscript {
namespace {

// Kernels of a module. With fewer, what a module takes by itself and its functions weigh more than another thread gains; of more,
// the first need not wait for the last.
constexpr size_t kLeastTogether = 3, kMostTogether = 16;

}  // namespace

void ProgramKernels::write() {
  if (std::exchange(is_written_, true)) return;
  for (TileProgram& loop : loops_) loop.write_kernels(*this);
  make_modules();
}

size_t ProgramKernels::add(std::string text) {
  const auto [known, is_new] = numbers_.try_emplace(std::move(text), texts_.size());
  if (is_new) texts_.push_back(known->first);
  return known->second;
}

void ProgramKernels::make_modules() {
  const size_t kernels = texts_.size();
  const size_t modules =
      std::max((kernels + kMostTogether - 1) / kMostTogether,
               std::clamp<size_t>(kernels / kLeastTogether, std::min<size_t>(kernels, 1), compiler_.most_threads()));
  for (size_t module = 0; module < modules; ++module) {
    std::vector<std::string> some;
    for (size_t kernel = module; kernel < kernels; kernel += modules) some.push_back(std::move(texts_[kernel]));
    modules_.push_back(compiler_.module(kernels::program_text(some, kernels::host_vector_dialect()), some.size()));
  }
  texts_.clear();
  numbers_.clear();
}

void ProgramKernels::count_work(int64_t& work, int64_t instructions) {
  constexpr int64_t kRunsAreWork = 1 << 16, kEnough = 1 << 22;  // instructions on elements
  if (is_requested_) return;
  work += instructions + kRunsAreWork;
  if (work < kEnough && !compiler_.is_sync()) return;
  is_requested_ = true;
  write();
  compiler_.request(modules_);
}

}  // namespace ltc::torchscript
