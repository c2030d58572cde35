#include "core/base/asymmetric_mutex.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace ltc {
namespace {

long membarrier(int command) { return ::syscall(SYS_membarrier, command, 0, 0); }

// Whether this process may send barriers to its threads.
bool has_barrier() {
#if defined(__SANITIZE_THREAD__)
  return false;  // it does not know them
#else
  static const bool known = [] {
    const long commands = membarrier(MEMBARRIER_CMD_QUERY);
    return commands > 0 && (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED);
  }();
  return known;
#endif
}

// 0, or the error. The first call takes milliseconds where the process has threads, so that only who needs it pays.
int pass_barrier() {
  static const int refused = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0 ? 0 : errno;
  if (refused) return refused;
  return membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0 ? 0 : errno;
}

}  // namespace

// The readers of all threads. One never moves, and later threads use it again.
struct AsymmetricMutex::Readers {
  std::mutex mutex;
  std::deque<Reader> all;

  // Leaked: threads end after static objects.
  static Readers& instance() {
    static auto* readers = new Readers();
    return *readers;
  }
};

void AsymmetricMutex::Reader::make_own() {
  struct Return {
    ~Return() {
      Readers& readers = Readers::instance();
      const std::lock_guard lock(readers.mutex);
      std::exchange(own, nullptr)->has_thread = false;
    }
  };
  Readers& readers = Readers::instance();
  {
    const std::lock_guard lock(readers.mutex);
    const auto found = std::ranges::find(readers.all, false, &Reader::has_thread);
    own = found == readers.all.end() ? &readers.all.emplace_back() : &*found;
    own->has_thread = true;
  }
  thread_local const Return at_end;  // a thread that locks after this takes a second Reader and never returns it
}

AsymmetricMutex::AsymmetricMutex() : keeps_out_(!has_barrier()) {}

void AsymmetricMutex::lock_shared_otherwise() {
  if (!Reader::own) {
    Reader::make_own();
    return lock_shared();
  }
  if (Reader::own->held.load(std::memory_order_relaxed) == this) Reader::own->held.store(nullptr, std::memory_order_release);
  { const std::lock_guard turn(turn_); }
  mutex_.lock_shared();
}

void AsymmetricMutex::lock() {
  turn_.lock();
  mutex_.lock();
  if (!has_barrier()) return;
  keeps_out_.store(true, std::memory_order_relaxed);
  if (const int error = pass_barrier()) {
    unlock();
    throw std::system_error(error, std::generic_category(), "membarrier");
  }
  // From here on each reader has seen keeps_out_, or is seen to hold this.
  Readers& readers = Readers::instance();
  const auto reads = [this](const Reader& reader) { return reader.held.load(std::memory_order_acquire) == this; };
  const auto one_reads = [&] {
    const std::lock_guard lock(readers.mutex);
    return std::ranges::any_of(readers.all, reads);
  };
  while (one_reads()) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

void AsymmetricMutex::unlock() {
  keeps_out_.store(!has_barrier(), std::memory_order_release);
  mutex_.unlock();
  turn_.unlock();
}

}  // namespace ltc
