#include "core/deploy/archive.h"

#include <algorithm>

#include "core/base/bytes.h"
#include "core/base/error.h"
#include "core/compile/passes/verify_nodes.h"
#include "core/ir/binary.h"
#include "core/ir/text.h"

namespace ltc::deploy {

std::shared_ptr<const Archive> Archive::open(const std::string& path, Graphs graphs) {
  auto file = MappedFile::open(path);
  const std::string_view bytes = file->bytes();
  return std::shared_ptr<const Archive>(new Archive(std::move(file), bytes, path, graphs));
}

std::shared_ptr<const Archive> Archive::read(std::string_view bytes, const std::string& path, Graphs graphs) {
  return std::shared_ptr<const Archive>(new Archive(nullptr, bytes, path, graphs));
}

Archive::Archive(std::shared_ptr<const MappedFile> file, std::string_view bytes, const std::string& path, Graphs graphs)
    : path_(path), graphs_(graphs), file_(std::move(file)), entries_(read_zip(bytes, path)) {
  manifest_ = read_manifest(entry(kManifestEntry), cat(path, ": ", kManifestEntry));
  std::vector<NamedTensor> values = read_safetensors(entry(kValuesEntry), cat(path, ": ", kValuesEntry));
  TensorsByName unused = tensors_by_name(values);
  state_ = take_values(manifest_.state, unused);
  constants_ = take_values(manifest_.constants, unused);
  if (!unused.empty()) fail(Code::kDataCorrupt, path_, ": nothing uses the value ", unused.begin()->first);
  for (FunctionManifest& function : manifest_.functions) functions_.push_back(check(std::move(function)));
  manifest_.functions.clear();
  for (const Executable& executable : manifest_.executables) entry(executable.entry);  // throws where it is not there
}

std::string_view Archive::entry(std::string_view name) const {
  const auto found = std::ranges::find(entries_, name, &ZipEntry::name);
  if (found == entries_.end()) fail(Code::kDataCorrupt, path_, " is no archive: it has no entry ", name);
  return found->data;
}

// Takes those of the names out of `unused`.
std::vector<NamedTensor> Archive::take_values(const std::vector<std::string>& names, TensorsByName& unused) const {
  std::vector<NamedTensor> taken;
  for (const std::string& name : names) {
    const auto found = unused.extract(name);
    if (!found) fail(Code::kDataCorrupt, path_, ": ", kValuesEntry, " has no tensor ", name);
    taken.push_back(*found.mapped());
  }
  return taken;
}

TypeId Archive::type_of_source(const Function& function, const SizedFunction& sized, const ValueSource& source) const {
  switch (source.kind) {
    case ValueSource::kInput: return sized.inputs[source.index];
    case ValueSource::kState: return state_[source.index].type;
    case ValueSource::kConstant: return constants_[source.index].type;
    case ValueSource::kOutput: break;
  }
  if (source.index >= sized.code.outputs.size())
    fail(Code::kDataCorrupt, path_, ": function ", function.name, ": its graph has no output ", source.index);
  return sized.code.types[sized.code.outputs[source.index]];
}

Function Archive::check(FunctionManifest manifest) const {
  const std::string where = cat(path_, ": function ", manifest.name);
  Function function{std::move(manifest)};
  try {
    ByteReader in(entry(function.graph));
    function.code = read_graph(in);
    if (!in.at_end()) fail(Code::kDataCorrupt, "bytes behind its end");
  } catch (const Error& error) {
    fail(error.code(), where, ": its graph: ", error.what());
  }
  with_sizes(function, examples_of(function.dimensions));  // checks it
  return function;
}

SizedFunction Archive::with_sizes(const Function& function, std::span<const int64_t> sizes) const {
  SizedFunction sized;
  const auto types_of = [&](const std::vector<NamedType>& tensors) {
    std::vector<TypeId> types;
    for (const NamedType& tensor : tensors) types.push_back(tensor.type_at(sizes));
    return types;
  };
  try {
    sized = {deploy::with_sizes(function.code, function.size_rules, sizes), types_of(function.inputs),
             types_of(function.results)};
    if (graphs_ == Graphs::kChecked) check_types(sized.code);
  } catch (const Error& error) {
    fail(error.code(), path_, ": function ", function.name, ": ", error.what());
  }
  check_fits(function, sized);
  return sized;
}

// That the graph takes and gives what the manifest says.
void Archive::check_fits(const Function& function, const SizedFunction& sized) const {
  const std::string where = cat(path_, ": function ", function.name);
  const auto require_like = [&](TypeId a, TypeId b, const auto&... what) {
    if (!same_shape(type_of(a), type_of(b)))
      fail(Code::kDataCorrupt, where, ": ", what..., " is ", type_text(a), " in the manifest and ", type_text(b),
           " in its graph");
  };
  size_t buffers = 0, numbers = 0;
  for (const Param& param : sized.code.params) {
    const TypeId type = sized.code.types[param.value];
    if (param.scalar) {
      if (numbers == function.numbers.size() || function.numbers[numbers].dtype != type_of(type).dtype)
        fail(Code::kDataCorrupt, where, ": number ", numbers, " is not that of its graph");
      ++numbers;
      continue;
    }
    if (buffers == function.params.size()) fail(Code::kDataCorrupt, where, ": its graph takes more than ", buffers, " params");
    require_like(type_of_source(function, sized, function.params[buffers]), type, "param ", buffers);
    ++buffers;
  }
  if (buffers != function.params.size() || numbers != function.numbers.size())
    fail(Code::kDataCorrupt, where, ": its graph takes ", buffers, " params and ", numbers, " numbers");
  for (size_t i = 0; i < function.results.size(); ++i)
    require_like(sized.results[i], type_of_source(function, sized, function.result_sources[i]), "result ", i);
  for (const Update& update : function.updates)
    require_like(state_[update.state].type, type_of_source(function, sized, update.from), "state ", state_[update.state].name);
}

size_t Archive::find_function(std::string_view name) const {
  const auto found = std::ranges::find(functions_, name, &Function::name);
  if (found != functions_.end()) return static_cast<size_t>(found - functions_.begin());
  std::string names;
  for (const Function& function : functions_) names += cat(names.empty() ? "" : ", ", function.name);
  fail(Code::kNotFound, path_, " has no function ", name, "; it has ", names);
}

size_t Archive::find_state(std::string_view name) const {
  const auto found = std::ranges::find(state_, name, &NamedTensor::name);
  if (found != state_.end()) return static_cast<size_t>(found - state_.begin());
  fail(Code::kNotFound, path_, " has no state ", name, "; it has ", state_.size(),
       state_.empty() ? "" : cat(", the first is ", state_.front().name));
}

const std::string* Archive::find_metadata(std::string_view key) const {
  const auto found = std::ranges::find(manifest_.metadata, key, &std::pair<std::string, std::string>::first);
  return found == manifest_.metadata.end() ? nullptr : &found->second;
}

std::string_view Archive::executable(std::string_view function, std::string_view target) const {
  for (const Executable& executable : manifest_.executables) {
    if (executable.function == function && executable.target == target) return entry(executable.entry);
  }
  return {};
}

std::vector<NamedTensor> Archive::sample(const std::string& name) const {
  return read_safetensors(entry(name), cat(path_, ": ", name));
}

void Archive::verify() const {
  for (const ZipEntry& entry : entries_) {
    if (crc32_of(entry.data) != entry.crc32)
      fail(Code::kDataCorrupt, path_, ": entry ", entry.name, " is damaged: its CRC differs");
  }
}

}  // namespace ltc::deploy
