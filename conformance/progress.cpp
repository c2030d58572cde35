#include "conformance/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <utility>

#include "conformance/result.h"
#include "core/base/error.h"

namespace ltc::conformance {
namespace {

constexpr std::chrono::seconds kSilence{2};
constexpr std::chrono::milliseconds kPause{200};

bool is_wanted() {
  const char* const value = std::getenv("TERM");
  const std::string_view terminal = value ? value : "";
  return ::isatty(STDERR_FILENO) && !terminal.empty() && terminal != "dumb";
}

size_t columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

Progress::Progress(size_t checks) : checks_(checks) {
  if (is_wanted()) thread_ = std::thread([this] { work(); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    stopped_.notify_one();
  }
  thread_.join();
  erase();
}

void Progress::starts(const std::string& check) {
  std::lock_guard lock(mutex_);
  running_ = check;
}

void Progress::ends(const std::function<void()>& print) {
  std::lock_guard lock(mutex_);
  ++done_;
  erase();
  print();
}

void Progress::work() {
  std::unique_lock lock(mutex_);
  stopped_.wait_for(lock, kSilence, [&] { return stopping_; });
  while (!stopping_) {
    draw();
    stopped_.wait_for(lock, kPause, [&] { return stopping_; });
  }
}

void Progress::draw() {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begin_).count();
  std::string line = cat(tier_of(running_), "  ", done_, " of ", checks_, ", ", seconds, " s: ", running_);
  line.resize(std::min(line.size(), columns() - 1));  // a line that wraps could not be erased
  std::cout.flush();
  std::cerr << "\r\033[K" << line << std::flush;
  is_drawn_ = true;
}

void Progress::erase() {
  if (std::exchange(is_drawn_, false)) std::cerr << "\r\033[K" << std::flush;
}

}  // namespace ltc::conformance
