// The reader of archives of ltc.export.
#include "core/deploy/archive.h"

#include <cstdlib>

#include "core/base/error.h"
#include "core/deploy/testing/sample_archive.h"
#include "fuzz/graphs.h"

namespace ltc::fuzz {
namespace {

using deploy::Archive;

// A copy of the input at an aligned place, as a mapped file is.
class Aligned {
 public:
  explicit Aligned(std::string_view input) : size_(input.size()) {
    bytes_ = static_cast<char*>(std::aligned_alloc(deploy::kAlignment, (size_ / deploy::kAlignment + 1) * deploy::kAlignment));
    std::memcpy(bytes_, input.data(), size_);
  }
  ~Aligned() { std::free(bytes_); }
  std::string_view bytes() const { return {bytes_, size_}; }

 private:
  char* bytes_;
  const size_t size_;
};

std::string again(const Archive& archive) {
  std::vector<deploy::NewEntry> entries;
  for (const deploy::ZipEntry& entry : archive.entries()) entries.push_back({std::string(entry.name), {entry.data}});
  return deploy::zip_bytes(entries);
}

}  // namespace

bool accept(std::string_view input) {
  const Aligned file(input);
  std::shared_ptr<const Archive> archive;
  try {
    archive = Archive::read(file.bytes(), "input");
  } catch (const Error&) {
    return false;
  }
  for (const deploy::Function& function : archive->functions()) {
    use(function.code);
    deploy::Sizes sizes = deploy::examples_of(function.dimensions);
    for (int64_t& size : sizes) size = size < INT64_MAX ? size + 1 : 0;
    try {
      archive->with_sizes(function, sizes);
    } catch (const Error&) {
    }
  }
  for (const deploy::NamedTensor& tensor : archive->state())
    require(tensor.data.size() == type_of(tensor.type).size_bytes(), "a value has the bytes of its type");
  const std::string written = again(*archive);
  const Aligned copy(written);
  require(again(*Archive::read(copy.bytes(), "written")) == written,
          "an archive that is written and read again has the same bytes");
  return true;
}

std::vector<std::string> sound_inputs() { return {deploy::testing::Entries().bytes(), deploy::testing::sized_entries().bytes()}; }

}  // namespace ltc::fuzz
