#include "host_compiler/host_kernels.h"

#include <dlfcn.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "ltc/plugin.hpp"

namespace ltc::host_compiler {

struct Library {
#define X(name) decltype(&ltc_hc_##name) name = nullptr;
  LTC_HC_FUNCTIONS(X)
#undef X
};

namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "libltc_host_compiler.so";
constexpr unsigned kMostThreads = 4;
constexpr int kNiceness = 5;

fs::path own_folder() {
  Dl_info info{};
  const bool known = dladdr(reinterpret_cast<const void*>(&own_folder), &info) != 0;
  return known ? fs::absolute(info.dli_fname).parent_path() : fs::path();
}

// Throws what is wrong with it.
Library load_library(const fs::path& path) {
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: kernels are in it
  if (!handle) throw plugin::Failure(LTC_INTERNAL, dlerror());
  Library library;
#define X(name)                                                                              \
  library.name = reinterpret_cast<decltype(&ltc_hc_##name)>(dlsym(handle, "ltc_hc_" #name)); \
  if (!library.name) throw plugin::Failure(LTC_INTERNAL, path.string() + " has no ltc_hc_" #name);
  LTC_HC_FUNCTIONS(X)
#undef X
  return library;
}

// One for the process; throws why there is none.
const Library& library() {
  static const Library opened = [] {
    const fs::path folder = own_folder();
    for (const fs::path& path : {folder / kFile, folder.parent_path() / kFile}) {
      if (fs::exists(path)) return load_library(path);
    }
    throw plugin::Failure(LTC_NOT_FOUND, std::string("there is no ") + kFile + " in " + folder.string() + " or above");
  }();
  return opened;
}

ltc_hc_sink sink_to(std::string& text) {
  return {&text, [](void* context, const char* data, size_t size) { static_cast<std::string*>(context)->assign(data, size); }};
}

}  // namespace

HostModule::~HostModule() {
  if (module_) library_->unload(module_);
}

HostKernels::HostKernels(const ltc_host_api* host, std::string cpu, CompileMode mode)
    : host_(host),
      cpu_(std::move(cpu)),
      mode_(mode),
      most_threads_(std::clamp(std::thread::hardware_concurrency(), 1u, kMostThreads)) {}

HostKernels::~HostKernels() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::shared_ptr<HostModule> HostKernels::module(const std::string& source, size_t kernels) {
  const std::lock_guard lock(mutex_);
  if (modules_.size() >= prune_at_) {
    std::erase_if(modules_, [](const auto& entry) { return entry.second.expired(); });
    prune_at_ = 2 * modules_.size() + 64;
  }
  std::weak_ptr<HostModule>& known = modules_[source];
  auto module = known.lock();
  if (!module) known = module = std::make_shared<HostModule>(source, kernels);
  return module;
}

void HostKernels::request(std::span<const std::shared_ptr<HostModule>> modules) {
  using State = HostModule::State;
  const auto state = [](const auto& module) { return module->state_.load(std::memory_order_acquire); };
  const auto are = [&](State least) {
    return std::ranges::all_of(modules, [&](const auto& module) { return state(module) >= least; });
  };
  if (mode_ == CompileMode::kOff || are(mode_ == CompileMode::kSync ? State::kDone : State::kRequested)) return;
  std::unique_lock lock(mutex_);
  for (const auto& module : modules) {
    if (state(module) == State::kNew) enqueue(module);
  }
  if (mode_ != CompileMode::kSync) return;
  changed_.wait(lock, [&] { return are(State::kDone); });
  for (const auto& module : modules) {
    if (!module->error_.empty()) throw plugin::Failure(LTC_INTERNAL, module->error_);
  }
}

void HostKernels::enqueue(const std::shared_ptr<HostModule>& module) {
  if (requests_.size() >= idle_ && threads_.size() < most_threads_) add_thread();
  module->state_ = HostModule::State::kRequested;
  module->requested_at_ = std::chrono::steady_clock::now();
  requests_.push_back(module);
  changed_.notify_all();
}

// Where the system gives no more, the threads that there are do it, or those that a later request begins.
void HostKernels::add_thread() {
  try {
    threads_.emplace_back([this, is_first = threads_.empty()] { work(is_first); });
  } catch (const std::system_error& error) {
    if (!threads_.empty()) return;
    const std::string message = std::string("there is no thread to compile kernels: ") + error.what();
    if (mode_ == CompileMode::kSync) throw plugin::Failure(LTC_RESOURCE_EXHAUSTED, message);
    log(LTC_LOG_WARN, message);
  }
}

// A program whose steps do not wait for kernels goes on beside them: the first thread is no slower than its own, others
// take what it leaves.
void HostKernels::work(bool is_first) {
  if (!is_first && mode_ != CompileMode::kSync) setpriority(PRIO_PROCESS, 0, kNiceness);  // on Linux that is the thread
  std::call_once(opened_, [this] { open(); });
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    changed_.wait(lock, [this] { return stopping_ || !requests_.empty(); });
    --idle_;
    if (stopping_) return;
    std::shared_ptr<HostModule> module = std::move(requests_.front());
    requests_.pop_front();
    lock.unlock();
    if (library_) make(*module);
    if (!module->error_.empty()) log(LTC_LOG_ERROR, module->error_);
    lock.lock();
    module->state_ = HostModule::State::kDone;
    changed_.notify_all();
    lock.unlock();
    module.reset();  // perhaps its end, which unloads it
    lock.lock();
  }
}

void HostKernels::open() {
  try {
    library_ = &library();
    library_->describe(cpu_.c_str(), sink_to(target_));
  } catch (...) {
    log(LTC_LOG_INFO, "fused kernels are interpreted, not compiled: " + plugin::current_error().message);
  }
}

// Without its functions the module stays of no use; nothing else may happen.
void HostKernels::make(HostModule& module) noexcept {
  try {
    const std::string object = object_of(module.source_);
    std::string why;
    module.library_ = library_;
    module.module_ = library_->load(object.data(), object.size(), sink_to(why));
    if (!module.module_) throw plugin::Failure(LTC_INTERNAL, "compiled kernels cannot be loaded: " + why);
    for (size_t i = 0; i < module.functions_.size(); ++i) module.functions_[i] = find(module, i);
    module.is_ready_.store(true, std::memory_order_release);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - module.requested_at_;
    log(LTC_LOG_DEBUG, "host kernels, " + std::to_string(module.functions_.size()) + " of them, are ready after " +
                           std::to_string(took.count()) + " ms");
  } catch (...) {
    module.error_ = plugin::current_error().message;
  }
}

HostModule::Function HostKernels::find(const HostModule& module, size_t kernel) const {
  const std::string name = "ltc_kernel_" + std::to_string(kernel);
  void* const function = library_->find(module.module_, name.c_str());
  if (!function) throw plugin::Failure(LTC_INTERNAL, "compiled kernels have no function " + name + ", or lack what they call");
  return reinterpret_cast<HostModule::Function>(function);
}

std::string HostKernels::object_of(const std::string& source) {
  const std::string about = "host kernels, " + std::to_string(source.size()) + " bytes of source";
  return plugin::find_or_make(host_, target_ + "\n" + source, about, [&] {
    std::string object, why;
    if (!library_->compile(source.c_str(), cpu_.c_str(), sink_to(object), sink_to(why))) {
      throw plugin::Failure(LTC_INTERNAL, "kernels do not compile: " + why + "\n" + source);
    }
    return object;
  });
}

}  // namespace ltc::host_compiler
