#include "core/base/private_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include "core/base/error.h"

namespace ltc {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

template <typename Call>
auto retried(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

struct stat facts_of(int descriptor) {
  struct stat facts {};
  if (fstat(descriptor, &facts) != 0) fail(Code::kInternal, reason(errno));
  return facts;
}

// Empty for what only this process' user, or root where it may, can have written.
std::string distrust(const struct stat& facts, Owner owner) {
  char mode[8];
  std::snprintf(mode, sizeof mode, "%04o", facts.st_mode & 07777u);
  const bool is_trusted = facts.st_uid == geteuid() || (owner == Owner::kUserOrRoot && facts.st_uid == 0);
  if (!is_trusted) return cat("user ", facts.st_uid, " owns it, and this process is of user ", geteuid());
  if (facts.st_mode & (S_IWGRP | S_IWOTH)) return cat("others than its owner may write it (mode ", mode, "); chmod go-w");
  return "";
}

std::string random_digits() {
  uint64_t number = 0;
  if (retried([&] { return getrandom(&number, sizeof number, 0); }) != sizeof number) fail(Code::kInternal, reason(errno));
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(number));
  return digits;
}

// The system's number for what went wrong, 0 for nothing.
int write_all(int descriptor, std::initializer_list<std::string_view> parts) {
  for (std::string_view part : parts) {
    while (!part.empty()) {
      const ssize_t written = retried([&] { return ::write(descriptor, part.data(), part.size()); });
      if (written < 0) return errno;
      part.remove_prefix(static_cast<size_t>(written));
    }
  }
  return 0;
}

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}

std::string PrivateFile::read(size_t size_bytes) {
  std::string bytes(size_bytes, '\0');
  size_t done = 0;
  while (done < size_bytes) {
    const ssize_t got = retried([&] { return ::read(descriptor_.get(), bytes.data() + done, size_bytes - done); });
    if (got < 0) fail(Code::kDataCorrupt, "it cannot be read: ", reason(errno));
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

void PrivateFile::touch() { futimens(descriptor_.get(), nullptr); }

std::optional<PrivateFolder> PrivateFolder::open(const std::filesystem::path& path, Owner owner) {
  Descriptor descriptor(retried([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (descriptor.get() < 0) {
    if (errno == ENOENT) return std::nullopt;
    fail(Code::kInvalidArgument, path.string(), ": ", reason(errno));
  }
  const std::string wrong = distrust(facts_of(descriptor.get()), owner);
  if (!wrong.empty()) fail(Code::kInvalidArgument, path.string(), ": ", wrong);
  return PrivateFolder(std::move(descriptor), path, owner);
}

PrivateFolder PrivateFolder::make(const std::filesystem::path& path) {
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) fail(Code::kInvalidArgument, path.string(), ": ", reason(errno));
  auto folder = open(path);
  if (!folder) fail(Code::kInvalidArgument, path.string(), ": it is gone again");
  return *std::move(folder);
}

std::optional<PrivateFile> PrivateFolder::find(const std::string& name) const {
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  Descriptor descriptor(retried([&] { return openat(descriptor_.get(), name.c_str(), kFlags); }));
  if (descriptor.get() < 0) {
    if (errno == ENOENT) return std::nullopt;
    fail(Code::kDataCorrupt, errno == ELOOP ? "it is a link" : reason(errno));
  }
  const struct stat facts = facts_of(descriptor.get());
  if (!S_ISREG(facts.st_mode)) fail(Code::kDataCorrupt, "it is no regular file");
  const std::string wrong = distrust(facts, owner_);
  if (!wrong.empty()) fail(Code::kDataCorrupt, wrong);
  return PrivateFile(
      std::move(descriptor), name, static_cast<uint64_t>(facts.st_size),
      std::chrono::system_clock::from_time_t(facts.st_mtim.tv_sec) + std::chrono::microseconds(facts.st_mtim.tv_nsec / 1000));
}

void PrivateFolder::write(const std::string& name, std::initializer_list<std::string_view> parts) const {
  const std::string temporary = cat(name, ".", random_digits(), ".tmp");
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const int file = retried([&] { return openat(descriptor_.get(), temporary.c_str(), kFlags, 0600); });
  int error = file < 0 ? errno : write_all(file, parts);
  if (file >= 0 && close(file) != 0 && !error) error = errno;
  if (!error && renameat(descriptor_.get(), temporary.c_str(), descriptor_.get(), name.c_str()) != 0) error = errno;
  if (!error) return;
  if (file >= 0) remove(temporary);
  fail(Code::kResourceExhausted, "cannot write ", (path_ / name).string(), ": ", reason(error));
}

void PrivateFolder::remove(const std::string& name) const { unlinkat(descriptor_.get(), name.c_str(), 0); }

std::vector<std::string> PrivateFolder::names() const {
  std::vector<std::string> names;
  const int own = openat(descriptor_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);  // a position of its own
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(own < 0 ? nullptr : fdopendir(own), [](DIR* open) { return closedir(open); });
  if (!listing) {
    Descriptor unused(own);
    fail(Code::kResourceExhausted, "cannot list ", path_.string(), ": ", reason(errno));
  }
  while (const dirent* entry = readdir(listing.get())) names.emplace_back(entry->d_name);
  return names;
}

}  // namespace ltc
