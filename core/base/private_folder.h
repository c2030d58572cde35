// Files that this process alone may have written: what they hold is run as code.
//
// A folder is trusted if it is a directory, the process' effective user owns it, and nobody else may write it; a file if it is a
// regular one and the same holds. For those that are only read the owner may be root too. Links to files are not followed, and no
// call waits: a FIFO in the place of a file is refused. Each object holds a descriptor, so what was checked is what is used,
// whatever becomes of the path.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ltc {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor();

  int get() const { return number_; }

 private:
  int number_;
};

class PrivateFile {
 public:
  PrivateFile(Descriptor descriptor, std::string name, uint64_t size_bytes, std::chrono::system_clock::time_point used)
      : descriptor_(std::move(descriptor)), name_(std::move(name)), size_bytes_(size_bytes), used_(used) {}

  const std::string& name() const { return name_; }
  uint64_t size_bytes() const { return size_bytes_; }
  std::chrono::system_clock::time_point used() const { return used_; }  // when it was written or touched

  std::string read(size_t size_bytes);  // the next bytes; fewer where the file ends
  void touch();

 private:
  Descriptor descriptor_;
  std::string name_;
  uint64_t size_bytes_;
  std::chrono::system_clock::time_point used_;
};

enum class Owner : uint8_t { kUser, kUserOrRoot };

class PrivateFolder {
 public:
  // Empty if there is no such folder. Throws Error with its path and what is wrong if it is not trusted or cannot be opened.
  static std::optional<PrivateFolder> open(const std::filesystem::path& path, Owner owner = Owner::kUser);
  // Makes it first, for its owner alone.
  static PrivateFolder make(const std::filesystem::path& path);

  // Empty if there is no such file. Throws Error with what is wrong if it is not trusted or cannot be opened.
  std::optional<PrivateFile> find(const std::string& name) const;

  // Writes a file, for its owner alone, that others see whole or not at all: to `name`, 16 random digits and ".tmp", which is
  // then renamed. Throws Error with the path and the system's reason; nothing is left then.
  void write(const std::string& name, std::initializer_list<std::string_view> parts) const;

  void remove(const std::string& name) const;  // what cannot be removed, stays
  std::vector<std::string> names() const;      // of all that is in it

 private:
  PrivateFolder(Descriptor descriptor, std::filesystem::path path, Owner owner)
      : descriptor_(std::move(descriptor)), path_(std::move(path)), owner_(owner) {}

  Descriptor descriptor_;
  std::filesystem::path path_;
  Owner owner_;
};

}  // namespace ltc
