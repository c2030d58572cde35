// Pinned memory through which bytes pass that the host wants back at once.
#pragma once
#include <cstdint>
#include <vector>

#include "handle.h"

namespace ltc::opencl {

// Used under the lock of the host's transfers: one call at a time.
class Staging {
 public:
  Staging(cl_context context, cl_command_queue queue) : context_(context), queue_(queue) {}
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Copies `size` bytes aside and submits the copy from there; returns that command.
  ClEvent write(cl_mem to, uint64_t offset, const void* from, uint64_t size);

 private:
  struct Piece {
    Memory memory;
    char* mapped;
    uint64_t size;
    ClEvent busy;  // the last command that reads it
  };
  Piece& free_piece(uint64_t size);

  cl_context context_;
  cl_command_queue queue_;
  std::vector<Piece> pieces_;
};

}  // namespace ltc::opencl
