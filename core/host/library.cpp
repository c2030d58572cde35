// std::filesystem instead of Boost.Filesystem: then Boost.DLL is headers only.
#define BOOST_DLL_USE_STD_FS
#include "core/host/library.h"

#include <dlfcn.h>
#include <elf.h>

#include <boost/dll/shared_library.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <vector>

#include "core/base/error.h"

namespace ltc::host {

namespace {

// The loader maps what the file's header promises and dies of a file cut short (SIGBUS). Whatever else is wrong it says itself.
void check_complete(const std::string& path) {
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header;
  if (error || !file.read(reinterpret_cast<char*>(&header), sizeof(header))) return;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) return;
  for (uint16_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    file.seekg(static_cast<std::streamoff>(header.e_phoff + uint64_t{i} * header.e_phentsize));
    const bool read = static_cast<bool>(file.read(reinterpret_cast<char*>(&segment), sizeof(segment)));
    if (!read || segment.p_offset > size || segment.p_filesz > size - segment.p_offset) {
      fail(Code::kNotFound, "the file is cut short: it has ", size, " bytes");
    }
  }
}

}  // namespace

struct Library::Handle {
  boost::dll::shared_library library;
};

Library::Library(std::shared_ptr<Handle> handle) : handle_(std::move(handle)) {}
Library::Library(Library&&) noexcept = default;
Library& Library::operator=(Library&&) noexcept = default;
Library::~Library() = default;

Library Library::open(const std::string& path) {
  check_complete(path);
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
