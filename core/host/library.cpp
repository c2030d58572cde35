// std::filesystem instead of Boost.Filesystem: then Boost.DLL is headers only.
#define BOOST_DLL_USE_STD_FS
#include "core/host/library.h"

#include <dlfcn.h>

#include <boost/dll/shared_library.hpp>
#include <filesystem>
#include <mutex>
#include <vector>

#include "core/base/error.h"

namespace ltc::host {

struct Library::Handle {
  boost::dll::shared_library library;
};

Library::Library(std::shared_ptr<Handle> handle) : handle_(std::move(handle)) {}
Library::Library(Library&&) noexcept = default;
Library& Library::operator=(Library&&) noexcept = default;
Library::~Library() = default;

Library Library::open(const std::string& path) {
  auto handle = std::make_shared<Handle>();
  std::error_code error;
  handle->library.load(path, error, boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
  if (error) {
    // Boost's own code is the same for every failure. The loader's words may begin with the path, which the caller adds.
    const char* words = ::dlerror();
    std::string why = words ? words : error.message();
    if (why.starts_with(path + ": ")) why.erase(0, path.size() + 2);
    fail(Code::kNotFound, why);
  }
  return Library(std::move(handle));
}

void* Library::find(const char* symbol) const {
  return handle_->library.has(symbol) ? reinterpret_cast<void*>(&handle_->library.get<char>(symbol)) : nullptr;
}

void Library::keep() {
  // Reachable from a static, so that leak checkers know it is meant.
  static auto* kept = new std::vector<std::shared_ptr<Handle>>();
  static auto* mutex = new std::mutex();
  std::lock_guard lock(*mutex);
  kept->push_back(handle_);
}

std::string own_folder() {
  Dl_info info{};
  std::filesystem::path file;
  if (::dladdr(reinterpret_cast<void*>(&own_folder), &info) && info.dli_fname) file = info.dli_fname;
  // Of the main program dladdr gives argv[0], which need not be a path.
  std::error_code error;
  if (!file.has_parent_path()) file = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto resolved = std::filesystem::canonical(file, error);
  return (error ? file : resolved).parent_path().string();
}

}  // namespace ltc::host
