#include "core/host/child_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <new>
#include <optional>
#include <utility>

#include "core/host/watchdog.h"

namespace ltc::host {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kDone = '\0';  // comes behind the output of work that was done

// A call that the parent sees too.
class SharedCall {
 public:
  SharedCall() : page_(::mmap(nullptr, sizeof(CurrentCall), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (page_ == MAP_FAILED) throw ChildError(cat("no memory: ", std::strerror(errno)));
    call_ = new (page_) CurrentCall();
  }
  ~SharedCall() { ::munmap(page_, sizeof(CurrentCall)); }
  SharedCall(const SharedCall&) = delete;
  SharedCall& operator=(const SharedCall&) = delete;

  CurrentCall& operator*() { return *call_; }
  // The name of a slot lies where it lies in the child.
  std::string slot() const {
    const char* const slot = call_->slot.load();
    return slot ? slot : "";
  }

 private:
  void* const page_;
  CurrentCall* call_;
};

[[noreturn]] void be_the_child(const std::function<void()>& work, int output, CurrentCall& call) {
  ::dup2(output, STDOUT_FILENO);
  CurrentCall::keep_at(call);
  work();
  std::cout << kDone << std::flush;
  ::_exit(0);
}

// All that comes until the other end is closed; nothing where that takes longer than the limit.
std::optional<std::string> read_all(int input, std::chrono::milliseconds limit) {
  const auto end = Clock::now() + limit;
  std::string text;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    pollfd ready{input, POLLIN, 0};
    const int ready_count = left.count() > 0 ? ::poll(&ready, 1, static_cast<int>(left.count())) : 0;
    if (ready_count == 0) return std::nullopt;
    if (ready_count < 0 && errno == EINTR) continue;  // a read would wait without a limit
    char bytes[4096];
    const ssize_t count = ::read(input, bytes, sizeof bytes);
    if (count == 0) return text;
    if (count > 0) text.append(bytes, static_cast<size_t>(count));
    if (count < 0 && errno != EINTR) throw ChildError(cat("cannot read from the child: ", std::strerror(errno)));
  }
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return cat("it ended the process by signal ", WTERMSIG(status), ", ", ::strsignal(WTERMSIG(status)));
  return cat("it ended the process with exit code ", WEXITSTATUS(status));
}

}  // namespace

ChildError::ChildError(const std::string& how, std::string in_slot)
    : Error(Code::kInternal, in_slot.empty() ? how : cat(how, ", in ", in_slot)), slot(std::move(in_slot)) {}

std::string in_a_child(const std::function<void()>& work, std::chrono::milliseconds limit) {
  SharedCall call;
  int ends[2];
  if (::pipe(ends) != 0) throw ChildError(cat("no pipe: ", std::strerror(errno)));
  std::cout.flush();
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    be_the_child(work, ends[1], *call);
  }
  ::close(ends[1]);
  const int reason = errno;
  std::optional<std::string> text = child < 0 ? std::nullopt : read_all(ends[0], limit);
  ::close(ends[0]);
  if (child < 0) throw ChildError(cat("no process: ", std::strerror(reason)));
  if (!text) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (!text) throw ChildError(cat("it gave no answer within ", limit.count() / 1000, " s"), call.slot());
  if (text->empty() || text->back() != kDone) throw ChildError(how_it_ended(status), call.slot());
  text->pop_back();
  return *text;
}

}  // namespace ltc::host
