// Shared libraries that are opened while the program runs, so that this plugin builds and loads where they are not.
#pragma once
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ltc/plugin.hpp"

namespace ltc::cuda {

using plugin::Failure;

inline constexpr int kOldestMajor = 12;  // of CUDA

// Where libraries of the CUDA toolkit are looked for besides the system's own places, in this order: the folders of
// the option `path`, CUDA_HOME, /usr/local/cuda, /usr/local/nvidia, the nvidia-* packages beside this plugin and beside a loaded
// PyTorch.
struct SearchPath {
  std::vector<std::filesystem::path> first;  // before the system's
  std::vector<std::filesystem::path> then;
};
SearchPath standard_search_path(const std::string& first);  // `first`: folders, separated by ':'

class Library {
 public:
  Library() = default;
  // The first of `names` that opens, in the order of the search path; empty where none does. Stays open for ever.
  static Library open(std::span<const std::string> names, const SearchPath& path);

  explicit operator bool() const { return handle_ != nullptr; }
  // As it was opened: a path, or a name that the system knows.
  const std::string& name() const { return name_; }

  // Throws NOT_FOUND where the library has no such function: it is too old.
  template <typename Function>
  void resolve(std::string_view function, Function*& to) const {
    to = reinterpret_cast<Function*>(symbol(std::string(function)));
  }

 private:
  void* symbol(const std::string& function) const;

  void* handle_ = nullptr;
  std::string name_;
};

// The functions of the first library of that name, each resolved by `resolve(library, table)`; null where there is none that has
// them all.
template <typename Table, typename Resolve>
std::unique_ptr<const Table> load_functions(const std::string& name, const SearchPath& path, Resolve resolve) {
  const Library library = Library::open(std::span(&name, 1), path);
  if (!library) return nullptr;
  auto table = std::make_unique<Table>();
  try {
    resolve(library, *table);
  } catch (const Failure&) {
    return nullptr;
  }
  return table;
}

// "libnvrtc.so.13", "libnvrtc.so.12": of a driver's CUDA version and older ones, since code of a newer one it may not load.
std::vector<std::string> versions_of(const std::string& library, int newest_major);

}  // namespace ltc::cuda
