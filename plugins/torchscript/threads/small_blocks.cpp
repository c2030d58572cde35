#include "torchscript/threads/small_blocks.h"

#include <new>
#include <utility>

namespace ltc::torchscript {
namespace {

constexpr size_t kKept = 256;

struct Piece {
  Piece* next;
};
struct List {
  Piece* head = nullptr;
  size_t count = 0;
};
constinit thread_local List t_list;

struct Cleaner {
  explicit Cleaner(void (*release)(void*)) : release(release) {}
  ~Cleaner() {
    t_list.count = kKept;  // what the thread frees after that goes past the list
    while (t_list.head) release(std::exchange(t_list.head, t_list.head->next));
  }
  void (*const release)(void*);
};

}  // namespace

void* take_small_block() {
  List& list = t_list;
  if (!list.head) return nullptr;
  --list.count;
  return std::exchange(list.head, list.head->next);
}

bool keep_small_block(void* block, void (*release)(void*)) {
  List& list = t_list;
  if (list.count >= kKept) return false;
  if (!list.head) [[unlikely]] {
    thread_local const Cleaner cleaner(release);  // made once per thread
  }
  list.head = new (block) Piece{list.head};
  ++list.count;
  return true;
}

}  // namespace ltc::torchscript
