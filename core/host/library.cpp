// std::filesystem instead of Boost.Filesystem: then Boost.DLL is headers only.
#define BOOST_DLL_USE_STD_FS
#include "core/host/library.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <boost/dll/shared_library.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <vector>

#include "core/base/error.h"

namespace ltc::host {

namespace {

struct Machine {
  uint16_t id;  // e_machine of an ELF header
  const char* name;
};
constexpr Machine kMachines[] = {
    {EM_X86_64, "x86-64"}, {EM_AARCH64, "arm64"}, {EM_386, "x86 of 32 bits"},  {EM_ARM, "arm of 32 bits"}, {EM_RISCV, "risc-v"},
    {EM_PPC64, "power"},   {EM_S390, "s390"},     {EM_LOONGARCH, "loongarch"}, {EM_MIPS, "mips"},
};
#if defined(__x86_64__)
constexpr uint16_t kOwnMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kOwnMachine = EM_AARCH64;
#elif defined(__riscv)
constexpr uint16_t kOwnMachine = EM_RISCV;
#elif defined(__powerpc64__)
constexpr uint16_t kOwnMachine = EM_PPC64;
#else
constexpr uint16_t kOwnMachine = EM_NONE;  // not compared
#endif

std::string machine_name(uint16_t id) {
  const auto* known = std::ranges::find(kMachines, id, &Machine::id);
  return known == std::end(kMachines) ? cat("machine ", id) : known->name;
}

class File {
 public:
  explicit File(const std::string& path) : descriptor_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
    if (descriptor_ < 0) fail(Code::kNotFound, errno == ENOENT ? "not there" : std::strerror(errno));
    if (::fstat(descriptor_, &facts_) != 0) fail(Code::kNotFound, std::strerror(errno));
  }
  ~File() { ::close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const struct stat& facts() const { return facts_; }
  template <typename Struct>
  bool read(uint64_t offset, Struct& to) const {
    return ::pread(descriptor_, &to, sizeof to, static_cast<off_t>(offset)) == static_cast<ssize_t>(sizeof to);
  }

 private:
  const int descriptor_;
  struct stat facts_ {};
};

[[noreturn]] void cut_short(uint64_t size) { fail(Code::kNotFound, "the file is cut short: it has ", size, " bytes"); }

// Refuses a file of which the loader would say nothing clear. It waits for ever at a pipe, and calls another processor's library
// a file that is not there. A file cut short ends the process (SIGBUS), as the loader maps all that the header promises.
void check_file(const std::string& path) {
  const File file(path);
  if (S_ISDIR(file.facts().st_mode)) fail(Code::kNotFound, "a folder, not a library");
  if (!S_ISREG(file.facts().st_mode)) fail(Code::kNotFound, "a pipe or a device, not a library");
  const auto size = static_cast<uint64_t>(file.facts().st_size);
  if (size == 0) fail(Code::kNotFound, "an empty file");
  Elf64_Ehdr header{};
  const bool has_header = file.read(0, header);
  if (std::memcmp(header.e_ident, ELFMAG, std::min<uint64_t>(size, SELFMAG)) != 0) return;
  if (!has_header) cut_short(size);
  const bool readable = header.e_ident[EI_DATA] == (std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB);
  if (readable && kOwnMachine != EM_NONE && header.e_machine != kOwnMachine) {
    fail(Code::kNotFound, "a library for ", machine_name(header.e_machine), ", and this process runs on ",
         machine_name(kOwnMachine));
  }
  if (!readable || header.e_ident[EI_CLASS] != ELFCLASS64) return;
  for (uint16_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    const bool read = file.read(header.e_phoff + uint64_t{i} * header.e_phentsize, segment);
    if (!read || segment.p_offset > size || segment.p_filesz > size - segment.p_offset) cut_short(size);
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
  check_file(path);
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
  // For the main program dladdr gives argv[0], which need not be a path.
  std::error_code error;
  if (!file.has_parent_path()) file = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto resolved = std::filesystem::canonical(file, error);
  return (error ? file : resolved).parent_path().string();
}

}  // namespace ltc::host
