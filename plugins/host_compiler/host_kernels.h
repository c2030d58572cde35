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
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "host_compiler/host_compiler.h"
#include "ltc/plugin.h"

namespace ltc::host_compiler {

struct Library;

// Kernels that are compiled together: to begin with one takes as long as to compile some.
class HostModule {
 public:
  using Function = void (*)(void* const* args, int64_t begin, int64_t end);

  HostModule(std::string source, size_t kernels) : source_(std::move(source)), functions_(kernels) {}
  HostModule(const HostModule&) = delete;
  HostModule& operator=(const HostModule&) = delete;
  ~HostModule();

  // Null until they are compiled; for ever where nothing can compile them, so the caller needs another way anyway.
  Function function(size_t kernel) const { return is_ready_.load(std::memory_order_acquire) ? functions_[kernel] : nullptr; }

 private:
  friend class HostKernels;
  enum class State : uint8_t { kNew, kRequested, kDone };

  const std::string source_;
  std::atomic<State> state_{State::kNew};
  std::atomic<bool> is_ready_{false};
  std::vector<Function> functions_;
  std::chrono::steady_clock::time_point requested_at_;
  const Library* library_ = nullptr;
  ltc_hc_module* module_ = nullptr;
  std::string error_;
};

enum class CompileMode : uint8_t {
  kAsync,  // no caller waits; what cannot be compiled is logged
  kSync,   // request() returns when the kernels are there; it throws if they cannot be compiled
  kOff,
};

// Compiles on threads of its own, in the order of the requests, and keeps the results in the host's cache.
class HostKernels {
 public:
  // `cpu` as in ltc_hc_describe. The host must outlive this.
  HostKernels(const ltc_host_api* host, std::string cpu, CompileMode mode);
  ~HostKernels();  // waits for the compilations that run

  // One per source, however often it is asked for. `source`: program_text() of so many kernels, ltc_kernel_0 and so on.
  std::shared_ptr<HostModule> module(const std::string& source, size_t kernels);
  // Cheap after the first time.
  void request(std::span<const std::shared_ptr<HostModule>> modules);
  bool is_sync() const { return mode_ == CompileMode::kSync; }
  // So many modules are compiled at a time.
  size_t most_threads() const { return most_threads_; }

 private:
  void enqueue(const std::shared_ptr<HostModule>& module);
  void add_thread();
  void work(bool is_first);
  void open();
  void make(HostModule& module) noexcept;
  HostModule::Function find(const HostModule& module, size_t kernel) const;
  std::string object_of(const std::string& source);
  void log(int32_t level, const std::string& message) const { host_->log(host_->host, level, message.data(), message.size()); }

  const ltc_host_api* const host_;
  const std::string cpu_;
  const CompileMode mode_;
  const size_t most_threads_;
  std::once_flag opened_;
  const Library* library_ = nullptr;  // once it is opened; null: there is none
  std::string target_;                // what objects depend on besides their source

  std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<std::string, std::weak_ptr<HostModule>> modules_;
  size_t prune_at_ = 64;  // forgotten modules are looked for when there are so many
  std::deque<std::shared_ptr<HostModule>> requests_;
  bool stopping_ = false;
  size_t idle_ = 0;                   // threads that wait for requests
  std::vector<std::thread> threads_;  // begin with requests
};

}  // namespace ltc::host_compiler
