#include "cuda/library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>

namespace ltc::cuda {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = secure_getenv(name);  // nothing in a process with more rights than its user
  return value ? value : "";
}

void add_folders(const std::string& list, std::vector<fs::path>& folders) {
  for (size_t begin = 0; begin < list.size();) {
    const size_t end = std::min(list.find(':', begin), list.size());
    if (end > begin) folders.emplace_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
}

// The folders `nvidia/*/lib` of the packages that lie in this one.
void add_wheels(const fs::path& site_packages, std::vector<fs::path>& folders) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(site_packages / "nvidia", ignored)) {
    if (fs::is_directory(entry.path() / "lib", ignored)) folders.push_back(entry.path() / "lib");
  }
}

// site-packages/ltc/plugins/libltc_cuda.so, site-packages/torch/lib/libc10.so.
fs::path three_up(const fs::path& library) { return library.parent_path().parent_path().parent_path(); }

fs::path own_path() {
  Dl_info info{};
  return dladdr(reinterpret_cast<const void*>(&own_path), &info) && info.dli_fname ? fs::path(info.dli_fname) : fs::path();
}

int note_torch(dl_phdr_info* info, size_t, void* found) {
  const fs::path path = info->dlpi_name ? info->dlpi_name : "";
  if (path.filename() != "libc10.so") return 0;
  *static_cast<fs::path*>(found) = path;
  return 1;
}

// NVRTC finds its builtins by name only, which fails outside the system's folders unless they are loaded already.
void open_builtins(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().filename().string().starts_with("libnvrtc-builtins.so"))
      dlopen(entry.path().c_str(), RTLD_NOW | RTLD_GLOBAL);
  }
}

// By a name that the system knows, or by which it was loaded before.
void* open_known(const std::string& name) {
  void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  link_map* map = nullptr;
  if (handle && name.starts_with("libnvrtc.so") && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0) {
    open_builtins(fs::path(map->l_name).parent_path());
  }
  return handle;
}

void* open_in(const fs::path& folder, const std::string& name) {
  std::error_code ignored;
  const fs::path path = folder / name;
  if (!fs::exists(path, ignored)) return nullptr;
  if (name.starts_with("libnvrtc.so")) open_builtins(folder);
  return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

SearchPath standard_search_path(const std::string& first) {
  SearchPath path;
  add_folders(first, path.first);
  for (const std::string& root : {variable("CUDA_HOME"), std::string("/usr/local/cuda")}) {
    if (!root.empty()) path.then.insert(path.then.end(), {fs::path(root) / "lib64", fs::path(root) / "lib"});
  }
  path.then.emplace_back("/usr/local/nvidia/lib64");  // where containers get the driver
  fs::path torch;
  dl_iterate_phdr(note_torch, &torch);
  for (const fs::path& library : {own_path(), torch}) {
    if (!library.empty()) add_wheels(three_up(library), path.then);
  }
  return path;
}

Library Library::open(std::span<const std::string> names, const SearchPath& path) {
  Library library;
  const auto try_folders = [&](const std::vector<fs::path>& folders) {
    for (const fs::path& folder : folders) {
      for (const std::string& name : names) {
        library.handle_ = open_in(folder, name);
        library.name_ = folder / name;
        if (library) return true;
      }
    }
    return false;
  };
  if (try_folders(path.first)) return library;
  for (const std::string& name : names) {
    library.handle_ = open_known(name);
    library.name_ = name;
    if (library) return library;
  }
  return try_folders(path.then) ? library : Library();
}

void* Library::symbol(const std::string& function) const {
  void* const found = dlsym(handle_, function.c_str());
  if (!found) throw Failure(LTC_NOT_FOUND, name_ + " has no function " + function + ": it is too old");
  return found;
}

std::vector<std::string> versions_of(const std::string& library, int newest_major) {
  std::vector<std::string> names;
  for (int major = newest_major; major >= kOldestMajor; --major) names.push_back(library + "." + std::to_string(major));
  return names;
}

}  // namespace ltc::cuda
