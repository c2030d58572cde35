#include "program_kernels.h"

#include <algorithm>
#include <span>

#include "kernels/render.h"

namespace ltc::torchscript {

size_t ProgramKernels::add(std::string text) {
  const auto [known, is_new] = numbers_.try_emplace(std::move(text), texts_.size());
  if (is_new) texts_.push_back(known->first);
  return known->second;
}

void ProgramKernels::finish() {
  for (size_t first = 0; first < texts_.size(); first += kTogether) {
    const std::span<const std::string> some(&texts_[first], std::min(kTogether, texts_.size() - first));
    modules_.push_back(compiler_.module(kernels::program_text(some, kernels::host_vector_dialect()), some.size()));
  }
  texts_.clear();
  numbers_.clear();
}

void ProgramKernels::count_work(int64_t& work, int64_t instructions) {
  constexpr int64_t kRunsAreWork = 1 << 16, kEnough = 1 << 22;  // instructions on elements
  if (is_requested_) return;
  work += instructions + kRunsAreWork;
  if (work < kEnough && !compiler_.waits()) return;
  is_requested_ = true;
  for (const auto& module : modules_) compiler_.request(module);
}

}  // namespace ltc::torchscript
