// Kernels in the host dialect of plugins/kernels, compiled in the background by libltc_host_compiler.so, which is looked for in
// the folder of the plugin that links this and in the one above. Every function here may be called from any thread.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

#include "host_compiler.h"
#include "ltc/plugin.h"

namespace ltc::host_compiler {

struct Library;

class HostKernel {
 public:
  using Function = void (*)(void* const* args, int64_t begin, int64_t end);

  explicit HostKernel(std::string source) : source_(std::move(source)) {}
  HostKernel(const HostKernel&) = delete;
  HostKernel& operator=(const HostKernel&) = delete;
  ~HostKernel();

  // Null until it is compiled; for ever where nothing can compile it, so the caller needs another way anyway.
  Function function() const { return function_.load(std::memory_order_acquire); }

 private:
  friend class HostKernels;
  enum class State : uint8_t { kNew, kRequested, kDone };

  const std::string source_;
  std::atomic<State> state_{State::kNew};
  std::atomic<Function> function_{nullptr};
  std::chrono::steady_clock::time_point requested_at_;
  const Library* library_ = nullptr;
  ltc_hc_module* module_ = nullptr;
  std::string error_;
};

enum class When : uint8_t {
  kBackground,  // no caller waits; what cannot be compiled is logged
  kWait,        // request() returns when the kernel is there; it throws if it cannot be compiled
  kNever,
};

// Compiles on a thread of its own, in the order of the requests, and keeps the results in the host's cache.
class HostKernels {
 public:
  // `cpu` as in ltc_hc_describe. The host must outlive this.
  HostKernels(const ltc_host_api* host, std::string cpu, When when) : host_(host), cpu_(std::move(cpu)), when_(when) {}
  ~HostKernels();  // waits for the compilation that runs

  // One per source, however often it is asked for. `source`: program_text() of one kernel; its ltc_kernel_0 is the function.
  std::shared_ptr<HostKernel> kernel(const std::string& source);
  // Cheap after the first time.
  void request(const std::shared_ptr<HostKernel>& kernel);
  bool waits() const { return when_ == When::kWait; }

 private:
  void work();
  void open();
  void make(HostKernel& kernel) noexcept;
  std::string object_of(const std::string& source);
  void log(int32_t level, const std::string& message) const { host_->log(host_->host, level, message.data(), message.size()); }

  const ltc_host_api* const host_;
  const std::string cpu_;
  const When when_;
  const Library* library_ = nullptr;  // of the thread; null: not opened yet, or there is none
  std::string target_;                // what objects depend on besides their source

  std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<std::string, std::weak_ptr<HostKernel>> kernels_;
  size_t prune_at_ = 64;  // forgotten kernels are looked for when there are so many
  std::deque<std::shared_ptr<HostKernel>> requests_;
  bool stopping_ = false;
  std::thread thread_;  // begins with the first request
};

}  // namespace ltc::host_compiler
