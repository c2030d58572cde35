// Pinned memory through which uploads pass that would wait for the queue.
#pragma once
#include <cstdint>
#include <vector>

#include "device/driver.h"

namespace ltc::device {

// Used under the lock of the host's transfers: one call at a time.
class Staging {
 public:
  static constexpr uint64_t kQuickBytes = 32 << 20;  // copied aside in a few milliseconds: a batch, not a model

  explicit Staging(Driver& driver) : driver_(driver) {}
  ~Staging();  // the queue is empty
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Copies the bytes aside and submits the copy from there; returns that command's event. Waits where too much is under way.
  EventRef write(Memory to, uint64_t offset, const void* from, uint64_t bytes);

 private:
  struct Piece {
    void* memory;
    uint64_t size;
    EventRef busy;  // the last command that reads it
  };
  Piece& free_piece(uint64_t size);
  void end_oldest_piece();

  Driver& driver_;
  std::vector<Piece> pieces_;
  uint64_t bytes_ = 0;  // of all pieces
};

}  // namespace ltc::device
