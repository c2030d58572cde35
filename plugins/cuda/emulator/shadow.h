// The last accesses to each byte, to find some that nothing orders. Blocks run one after the other; a segment is the time of one
// block from one meeting of all its threads to the next. Segments are numbered through, so that the number alone tells accesses
// of this segment from those of an earlier one of the block, and of other blocks.
#pragma once
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace ltc::emulator {

// A moment of a thread. `clock`: of the thread since the segment began, see Warp::clocks.
struct Stamp {
  uint64_t segment : 38 = 0;
  uint64_t thread : 10 = 0;
  uint64_t clock : 14 = 0;
  uint64_t atomic : 1 = 0;
  uint64_t pending : 1 = 0;  // cp.async: what was written is not there yet
};

// Two readers: one that came before what is checked tells nothing of one of another warp.
struct Cell {
  Stamp writer, readers[2];
};

// Cells of global memory, for the pages that kernels touch.
class Shadow {
 public:
  static constexpr uint64_t kPage = 1024;
  // Those of the bytes from `address` to the end of the page, at least as many as an aligned access has.
  Cell* cells(uint64_t address) {
    const uint64_t page = address / kPage;
    Known& known = known_[page % kKnown];
    if (known.page != page || !known.cells) known = {page, find(page)};
    return known.cells + address % kPage;
  }
  // Forgets all, once that is much. For the beginning of a launch, which needs nothing of those before.
  void tidy();

 private:
  static constexpr size_t kKnown = 256, kMostPages = 4096;
  struct Known {
    uint64_t page = 0;
    Cell* cells = nullptr;
  };
  Cell* find(uint64_t page);

  std::unordered_map<uint64_t, std::unique_ptr<Cell[]>> pages_;
  Known known_[kKnown];  // found last
};

}  // namespace ltc::emulator
