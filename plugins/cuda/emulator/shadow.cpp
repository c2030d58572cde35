#include "cuda/emulator/shadow.h"

#include <algorithm>

namespace ltc::emulator {

Cell* Shadow::find(uint64_t page) {
  std::unique_ptr<Cell[]>& found = pages_[page];
  if (!found) found = std::make_unique<Cell[]>(kPage);
  return found.get();
}

void Shadow::tidy() {
  if (pages_.size() <= kMostPages) return;
  pages_.clear();
  std::ranges::fill(known_, Known{});
}

}  // namespace ltc::emulator
