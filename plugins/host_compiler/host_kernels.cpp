#include "host_kernels.h"

#include <dlfcn.h>

#include <filesystem>
#include <utility>

#include "abi/failure.h"

namespace ltc::host_compiler {

struct Library {
#define X(name) decltype(&ltc_hc_##name) name = nullptr;
  LTC_HC_FUNCTIONS(X)
#undef X
};

namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "libltc_host_compiler.so";

fs::path own_folder() {
  Dl_info info{};
  const bool known = dladdr(reinterpret_cast<const void*>(&own_folder), &info) != 0;
  return known ? fs::absolute(info.dli_fname).parent_path() : fs::path();
}

// Throws what is wrong with it.
Library load_library(const fs::path& path) {
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: kernels are in it
  if (!handle) throw abi::Failure(LTC_INTERNAL, dlerror());
  Library library;
#define X(name)                                                                              \
  library.name = reinterpret_cast<decltype(&ltc_hc_##name)>(dlsym(handle, "ltc_hc_" #name)); \
  if (!library.name) throw abi::Failure(LTC_INTERNAL, path.string() + " has no ltc_hc_" #name);
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
    throw abi::Failure(LTC_NOT_FOUND, std::string("there is no ") + kFile + " in " + folder.string() + " or above");
  }();
  return opened;
}

ltc_string view(const std::string& text) { return {text.data(), text.size()}; }

ltc_hc_sink sink_to(std::string& text) {
  return {&text, [](void* context, const char* data, size_t size) { static_cast<std::string*>(context)->assign(data, size); }};
}

}  // namespace

HostKernel::~HostKernel() {
  if (module_) library_->unload(module_);
}

HostKernels::~HostKernels() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<HostKernel> HostKernels::kernel(const std::string& source) {
  const std::lock_guard lock(mutex_);
  if (kernels_.size() >= prune_at_) {
    std::erase_if(kernels_, [](const auto& entry) { return entry.second.expired(); });
    prune_at_ = 2 * kernels_.size() + 64;
  }
  std::weak_ptr<HostKernel>& known = kernels_[source];
  auto kernel = known.lock();
  if (!kernel) known = kernel = std::make_shared<HostKernel>(source);
  return kernel;
}

void HostKernels::request(const std::shared_ptr<HostKernel>& kernel) {
  using State = HostKernel::State;
  const State state = kernel->state_.load(std::memory_order_acquire);
  if (when_ == When::kNever || state == State::kDone || (state == State::kRequested && when_ != When::kWait)) return;
  std::unique_lock lock(mutex_);
  if (kernel->state_ == State::kNew) {
    kernel->state_ = State::kRequested;
    kernel->requested_at_ = std::chrono::steady_clock::now();
    requests_.push_back(kernel);
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
    changed_.notify_all();
  }
  if (when_ != When::kWait) return;
  changed_.wait(lock, [&] { return kernel->state_ == State::kDone; });
  if (!kernel->error_.empty()) throw abi::Failure(LTC_INTERNAL, kernel->error_);
}

void HostKernels::work() {
  open();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !requests_.empty(); });
    if (stopping_) return;
    std::shared_ptr<HostKernel> kernel = std::move(requests_.front());
    requests_.pop_front();
    lock.unlock();
    if (library_) make(*kernel);
    if (!kernel->error_.empty()) log(LTC_LOG_ERROR, kernel->error_);
    lock.lock();
    kernel->state_ = HostKernel::State::kDone;
    changed_.notify_all();
    lock.unlock();
    kernel.reset();  // perhaps its end, which unloads it
    lock.lock();
  }
}

void HostKernels::open() {
  try {
    library_ = &library();
    library_->describe(cpu_.c_str(), sink_to(target_));
  } catch (...) {
    log(LTC_LOG_INFO, "fused kernels are interpreted, not compiled: " + abi::current_error().message);
  }
}

// Without its function the kernel stays of no use; nothing else may happen.
void HostKernels::make(HostKernel& kernel) noexcept {
  try {
    const std::string object = object_of(kernel.source_);
    std::string why;
    kernel.library_ = library_;
    kernel.module_ = library_->load(object.data(), object.size(), sink_to(why));
    if (!kernel.module_) throw abi::Failure(LTC_INTERNAL, "a compiled kernel cannot be loaded: " + why);
    void* const function = library_->find(kernel.module_, "ltc_kernel_0");
    if (!function) throw abi::Failure(LTC_INTERNAL, "a compiled kernel has no function ltc_kernel_0, or lacks what that calls");
    kernel.function_.store(reinterpret_cast<HostKernel::Function>(function), std::memory_order_release);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - kernel.requested_at_;
    log(LTC_LOG_DEBUG, "a host kernel is ready after " + std::to_string(took.count()) + " ms");
  } catch (...) {
    kernel.error_ = abi::current_error().message;
  }
}

std::string HostKernels::object_of(const std::string& source) {
  const std::string key = target_ + "\n" + source, about = "a host kernel, " + std::to_string(source.size()) + " bytes of source";
  std::string object, why;
  const ltc_sink found{&object, [](void* context, const void* data, size_t size) {
                         static_cast<std::string*>(context)->append(static_cast<const char*>(data), size);
                         return true;
                       }};
  if (host_->cache_find(host_->host, view(key), &found)) return object;
  if (!library_->compile(source.c_str(), cpu_.c_str(), sink_to(object), sink_to(why))) {
    throw abi::Failure(LTC_INTERNAL, "a kernel does not compile: " + why + "\n" + source);
  }
  host_->cache_insert(host_->host, view(key), view(about), view(object));
  return object;
}

}  // namespace ltc::host_compiler
