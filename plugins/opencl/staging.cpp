#include "staging.h"

#include <algorithm>
#include <cstring>

#include "errors.h"

namespace ltc::opencl {
namespace {

constexpr uint64_t kSmallestPiece = 64 * 1024;
constexpr size_t kMostPieces = 16;

bool is_done(const ClEvent& event) {
  if (!event) return true;
  cl_int status = CL_COMPLETE;
  clGetEventInfo(event.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  return status <= CL_COMPLETE;
}

}  // namespace

Staging::~Staging() {
  for (Piece& piece : pieces_) clEnqueueUnmapMemObject(queue_, piece.memory.get(), piece.mapped, 0, nullptr, nullptr);
  clFinish(queue_);
}

Staging::Piece& Staging::free_piece(uint64_t size) {
  const auto found = std::ranges::find_if(pieces_, [&](const Piece& p) { return p.size >= size && is_done(p.busy); });
  if (found != pieces_.end()) return *found;
  if (pieces_.size() == kMostPieces) {
    // The oldest goes; its command still holds the memory.
    clEnqueueUnmapMemObject(queue_, pieces_[0].memory.get(), pieces_[0].mapped, 0, nullptr, nullptr);
    pieces_.erase(pieces_.begin());
  }
  size = std::max(size, kSmallestPiece);
  cl_int error = CL_SUCCESS;
  Memory memory(clCreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, size, nullptr, &error));
  check(error, "clCreateBuffer (pinned)");
  void* mapped = clEnqueueMapBuffer(queue_, memory.get(), CL_TRUE, CL_MAP_WRITE, 0, size, 0, nullptr, nullptr, &error);
  check(error, "clEnqueueMapBuffer");
  pieces_.push_back({std::move(memory), static_cast<char*>(mapped), size, {}});
  return pieces_.back();
}

ClEvent Staging::write(cl_mem to, uint64_t offset, const void* from, uint64_t size) {
  Piece& piece = free_piece(size);
  std::memcpy(piece.mapped, from, size);
  cl_event event = nullptr;
  check(clEnqueueWriteBuffer(queue_, to, CL_FALSE, offset, size, piece.mapped, 0, nullptr, &event), "clEnqueueWriteBuffer");
  piece.busy = ClEvent(event);
  return piece.busy;
}

}  // namespace ltc::opencl
