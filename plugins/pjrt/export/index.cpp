#include <fnmatch.h>

#include <cmath>

#include "pjrt/export/folder.h"
#include "pjrt/export/json.h"
#include "pjrt/export/npy.h"

namespace ltc::pjrt {
namespace {

constexpr const char* kFormat = "ltc-stablehlo 1";

template <typename Items, typename Text>
std::string joined(const Items& items, const char* between, Text text) {
  std::string all;
  for (const auto& item : items) all += (all.empty() ? "" : between) + text(item);
  return all;
}

std::string text_of(const Tensor& tensor, bool is_output) {
  const std::string shape = joined(tensor.shape, ", ", [](int64_t size) { return std::to_string(size); });
  const std::string tolerance = cat(", \"ulps\": ", tensor.tolerance.ulps, ", \"floor\": ", tensor.tolerance.floor);
  return cat("{\"file\": ", json_text(tensor.file), ", \"dtype\": ", json_text(dtype_name(tensor.dtype)), ", \"shape\": [", shape,
             "]", is_output ? tolerance : "", "}");
}

std::string text_of(const ModuleEntry& entry) {
  const auto list = [](const std::vector<Tensor>& tensors, bool are_outputs) {
    return joined(tensors, ",\n     ", [&](const Tensor& tensor) { return text_of(tensor, are_outputs); });
  };
  return cat("  {\"name\": ", json_text(entry.name), ", \"check\": ", json_text(entry.check), ", \"op\": ", json_text(entry.op),
             ",\n   \"graph\": ", json_text(entry.graph), ",\n   \"module\": ", json_text(entry.file), ",\n   \"inputs\": [",
             list(entry.inputs, false), "],\n   \"outputs\": [", list(entry.outputs, true), "]}");
}

// The name of a file in the folder itself.
std::string file_of(const Json& json) {
  const std::string& file = json.text();
  if (file.empty() || file.find('/') != file.npos) fail(Code::kDataCorrupt, "not the name of a file in the folder: '", file, "'");
  return file;
}

std::vector<Tensor> tensors_of(const Json& json, bool are_outputs) {
  std::vector<Tensor> tensors;
  for (const Json& entry : json.list()) {
    Tensor tensor{file_of(entry.at("file")), dtype_from_name(entry.at("dtype").text()), {}};
    if (tensor.dtype == DType::kNone) fail(Code::kDataCorrupt, "no dtype: '", entry.at("dtype").text(), "'");
    for (const Json& size : entry.at("shape").list()) tensor.shape.push_back(std::llround(size.number()));
    if (are_outputs) tensor.tolerance = {entry.at("ulps").number(), entry.at("floor").number()};
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace

bool matches(const std::string& name, const std::string& pattern) { return fnmatch(pattern.c_str(), name.c_str(), 0) == 0; }

void write_index(const std::filesystem::path& folder, const Index& index) {
  const auto missing = [](const NotExported& entry) {
    return cat("  {\"name\": ", json_text(entry.name), ", \"reason\": ", json_text(entry.reason), "}");
  };
  write_file(folder / "index.json", cat("{\"format\": ", json_text(kFormat), ",\n \"modules\": [\n",
                                        joined(index.modules, ",\n", [](const ModuleEntry& entry) { return text_of(entry); }),
                                        "],\n \"not_exported\": [\n", joined(index.not_exported, ",\n", missing), "]}\n"));
}

Index read_index(const std::filesystem::path& folder) {
  const Json json = Json::parse(read_file(folder / "index.json"));
  if (json.at("format").text() != kFormat)
    fail(Code::kUnsupported, "the index is of the format '", json.at("format").text(), "'");
  Index index;
  for (const Json& entry : json.at("modules").list()) {
    index.modules.push_back({entry.at("name").text(), entry.at("check").text(), entry.at("op").text(), entry.at("graph").text(),
                             file_of(entry.at("module")), tensors_of(entry.at("inputs"), false),
                             tensors_of(entry.at("outputs"), true)});
  }
  for (const Json& entry : json.at("not_exported").list()) {
    index.not_exported.push_back({entry.at("name").text(), entry.at("reason").text()});
  }
  return index;
}

}  // namespace ltc::pjrt
