// One line on a terminal while checks run: "memory  123 of 1450, 12 s: MemoryTransfer.a_copy". It begins after 2 s, is drawn anew
// as time goes on, and is gone at the end. Nothing at all where the standard error is no terminal.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace ltc::conformance {

// Threads: all members from any thread.
class Progress {
 public:
  explicit Progress(size_t checks);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void starts(const std::string& check);
  // A check has ended; `print` writes what there is to say of it, with the line out of its way.
  void ends(const std::function<void()>& print);

 private:
  void work();
  void draw();
  void erase();

  const size_t checks_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::mutex mutex_;  // guards what follows
  std::condition_variable stopped_;
  size_t done_ = 0;
  std::string running_;
  bool is_drawn_ = false, stopping_ = false;
  std::thread thread_;  // none where there is no terminal
};

}  // namespace ltc::conformance
