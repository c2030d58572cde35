#include "device/staging.h"

#include <algorithm>
#include <cstring>

namespace ltc::device {
namespace {

constexpr uint64_t kSmallestPiece = 64 * 1024;
constexpr size_t kMostPieces = 64;
constexpr uint64_t kMostBytes = 256 << 20;

// The error of a copy is heard where its event is asked; here it only ends the use of the memory.
bool is_over(const EventRef& event) {
  try {
    return !event || event->is_over();
  } catch (const Failure&) {
    return true;
  }
}

void wait(const EventRef& event) {
  try {
    if (event) event->wait();
  } catch (const Failure&) {
  }
}

}  // namespace

Staging::~Staging() {
  for (const Piece& piece : pieces_) driver_.release_pinned(piece.memory);
}

Staging::Piece& Staging::free_piece(uint64_t size) {
  const auto found = std::ranges::find_if(pieces_, [&](Piece& p) { return p.size >= size && is_over(p.busy); });
  if (found != pieces_.end()) return *found;
  size = std::max(size, kSmallestPiece);
  while (!pieces_.empty() && (pieces_.size() == kMostPieces || bytes_ + size > kMostBytes)) end_oldest_piece();
  pieces_.reserve(kMostPieces);
  pieces_.push_back({driver_.allocate_pinned(size), size, nullptr});
  bytes_ += size;
  return pieces_.back();
}

void Staging::end_oldest_piece() {
  wait(pieces_[0].busy);
  driver_.release_pinned(pieces_[0].memory);
  bytes_ -= pieces_[0].size;
  pieces_.erase(pieces_.begin());
}

EventRef Staging::write(Memory to, uint64_t offset, const void* from, uint64_t bytes) {
  Piece& piece = free_piece(bytes);
  std::memcpy(piece.memory, from, bytes);
  piece.busy = driver_.write(to, offset, piece.memory, bytes);
  return piece.busy;
}

}  // namespace ltc::device
