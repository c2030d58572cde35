// An archive: functions as graphs, with the values that they begin with, in one file that is read in place. docs/archive.md
// describes it.
//
// Nothing in it is run when it is read. All of its structure is checked: places of bytes, names, that manifest and graphs fit,
// and that the types of each node follow from its operands. verify() compares the CRC too. Immutable; any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/deploy/manifest.h"
#include "core/deploy/safetensors.h"
#include "core/deploy/zip.h"
#include "core/ir/graph.h"

namespace ltc::deploy {

inline constexpr const char* kManifestEntry = "manifest.json";
inline constexpr const char* kValuesEntry = "values.safetensors";

// Whether the types of nodes are checked. Only a graph of a trusted source needs no check, and only what runs it needs one.
enum class Graphs : uint8_t { kChecked, kTrusted };

struct Function : FunctionManifest {
  Graph code;
};

// A function as it is for the sizes of a call.
struct SizedFunction {
  Graph code;
  std::vector<TypeId> inputs, results;
};

class Archive {
 public:
  // Throws NOT_FOUND, DATA_CORRUPT or UNSUPPORTED, with the path and the part.
  static std::shared_ptr<const Archive> open(const std::string& path, Graphs graphs = Graphs::kChecked);
  // The same of a file's bytes, which begin at a multiple of kAlignment and stay as long as the archive. `path` is for errors.
  static std::shared_ptr<const Archive> read(std::string_view bytes, const std::string& path, Graphs graphs = Graphs::kChecked);

  const std::string& path() const { return path_; }
  const Manifest& manifest() const { return manifest_; }  // but for its functions
  const std::vector<Function>& functions() const { return functions_; }
  const std::vector<NamedTensor>& state() const { return state_; }          // what it begins with, in the manifest's order
  const std::vector<NamedTensor>& constants() const { return constants_; }  // the same
  const std::vector<ZipEntry>& entries() const { return entries_; }
  std::string_view entry(std::string_view name) const;  // its bytes; throws DATA_CORRUPT
  // Each throws NOT_FOUND.
  size_t find_function(std::string_view name) const;
  size_t find_state(std::string_view name) const;
  const std::string* find_metadata(std::string_view key) const;  // null where there is none
  // The function compiled for that target; empty if it is not.
  std::string_view executable(std::string_view function, std::string_view target) const;
  std::vector<NamedTensor> sample(const std::string& entry) const;
  // A function with the sizes that its dimensions have in a call. Throws INVALID_ARGUMENT for sizes that are too large, and
  // DATA_CORRUPT where its formulas do not give what its inputs, the state and its graph agree on.
  SizedFunction with_sizes(const Function& function, std::span<const int64_t> sizes) const;

  void verify() const;  // reads all of it; throws DATA_CORRUPT for an entry whose CRC differs

 private:
  Archive(std::shared_ptr<const MappedFile> file, std::string_view bytes, const std::string& path, Graphs graphs);
  std::vector<NamedTensor> take_values(const std::vector<std::string>& names, TensorsByName& unused) const;
  Function check(FunctionManifest manifest) const;
  void check_fits(const Function& function, const SizedFunction& sized) const;
  TypeId type_of_source(const Function& function, const SizedFunction& sized, const ValueSource& source) const;

  const std::string path_;
  const Graphs graphs_;
  const std::shared_ptr<const MappedFile> file_;
  std::vector<ZipEntry> entries_;
  Manifest manifest_;
  std::vector<NamedTensor> state_, constants_;
  std::vector<Function> functions_;
};

}  // namespace ltc::deploy
