// ltc-archive: what is in an archive, and whether a plugin computes what its samples say. It needs no Python.

#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "core/base/bytes.h"
#include "core/deploy/graph_json.h"
#include "core/deploy/model.h"
#include "core/deploy/tool.h"
#include "core/ir/text.h"
#include "core/run/queue/compare_values.h"

namespace ltc::deploy {
namespace {

constexpr const char* kUsage = R"(usage: ltc show ARCHIVE [--graph FUNCTION] [--json]
       ltc check ARCHIVE [--backend PLUGIN] [--tolerance X] [--executables] [--trust-graphs]
       ltc compile ARCHIVE [--backend PLUGIN] [--to FILE] [--trust-graphs]

'show' lists the functions of an archive with what they take, give and change. It loads no plugin.
'check' compares the file with its checksums, compiles each function, runs the samples, and says how the results differ from those that were
kept when the archive was written.
'compile' adds each function's executable for the plugin's device to the archive. Others of that device are replaced. They are code: a program
takes them only where it says that it trusts the file.

  --graph FUNCTION  print the graph of a function
  --json            write JSON
  --backend PLUGIN  plugin, as in LTC_BACKEND; default: that variable, else torchscript
  --executables     take the executables of the archive where they fit, and say how many did
  --trust-graphs    take ops that no rule says the types of; for files of a trusted source
  --to FILE         write another archive, and leave ARCHIVE as it is
  --tolerance X     relative difference that a result may have; default: by dtype, 1e-4 of f32

Exit code: 0 all is well, 1 the archive is damaged, cannot be run or gives other results, 2 wrong use.
)";

struct Options {
  std::string command, path, backend, graph, to;
  std::optional<double> tolerance;
  bool json = false, executables = false, trusts_graphs = false;
};

Options read_options(const std::vector<std::string>& words) {
  Options options;
  for (size_t i = 0; i < words.size(); ++i) {
    const auto value = [&]() -> const std::string& {
      if (i + 1 == words.size()) throw WrongUse(words[i] + " needs a value");
      return words[++i];
    };
    if (words[i] == "--json") {
      options.json = true;
    } else if (words[i] == "--executables") {
      options.executables = true;
    } else if (words[i] == "--trust-graphs") {
      options.trusts_graphs = true;
    } else if (words[i] == "--to") {
      options.to = value();
    } else if (words[i] == "--graph") {
      options.graph = value();
    } else if (words[i] == "--backend") {
      options.backend = value();
    } else if (words[i] == "--tolerance") {
      size_t end = 0;
      const std::string& text = value();
      try {
        options.tolerance = std::stod(text, &end);
      } catch (const std::exception&) {
      }
      if (end != text.size() || !(options.tolerance >= 0))
        throw WrongUse("--tolerance " + text + ": this is to be a number from 0");
    } else if (words[i].starts_with("-")) {
      throw WrongUse("there is no option " + words[i]);
    } else if (options.command.empty()) {
      options.command = words[i];
    } else if (options.path.empty()) {
      options.path = words[i];
    } else {
      throw WrongUse("there is an argument too many: " + words[i]);
    }
  }
  if (options.command != "show" && options.command != "check" && options.command != "compile")
    throw WrongUse("a command is missing: show, check or compile");
  if (options.path.empty()) throw WrongUse("the archive is missing");
  return options;
}

size_t bytes_of(const std::vector<NamedTensor>& tensors) {
  size_t bytes = 0;
  for (const NamedTensor& tensor : tensors) bytes += tensor.data.size();
  return bytes;
}

nlohmann::ordered_json json_of(const std::vector<NamedType>& types, const Function& function) {
  auto list = nlohmann::ordered_json::array();
  for (const NamedType& type : types) list.push_back({{"name", type.name}, {"type", type.text(function.dimensions)}});
  return list;
}

nlohmann::ordered_json json_of(const Dimension& dimension) {
  nlohmann::ordered_json json = {{"name", dimension.name}, {"min", dimension.min}};
  if (dimension.max != INT64_MAX) json["max"] = dimension.max;
  return json;
}

int show(const Options& options) {
  const auto archive = Archive::open(options.path, Graphs::kTrusted);
  const Manifest& manifest = archive->manifest();
  if (!options.graph.empty()) {
    const Graph& graph = archive->functions()[archive->find_function(options.graph)].code;
    std::cout << (options.json ? graph_json(graph) : print(graph));
    return 0;
  }
  if (options.json) {
    nlohmann::ordered_json json = {{"format", kFormat},
                                   {"producer", manifest.producer},
                                   {"metadata", nlohmann::ordered_json::object()},
                                   {"state", {{"tensors", manifest.state.size()}, {"bytes", bytes_of(archive->state())}}},
                                   {"functions", nlohmann::ordered_json::array()}};
    for (const auto& [key, value] : manifest.metadata) json["metadata"][key] = value;
    for (const Function& function : archive->functions()) {
      json["functions"].push_back({{"name", function.name},
                                   {"inputs", json_of(function.inputs, function)},
                                   {"results", json_of(function.results, function)},
                                   {"ops", function.code.nodes.size()},
                                   {"updates", function.updates.size()},
                                   {"samples", function.samples.size()}});
      for (const Dimension& dimension : function.dimensions)
        if (dimension.is.empty()) json["functions"].back()["dimensions"].push_back(json_of(dimension));
    }
    std::cout << json.dump(2) << "\n";
    return 0;
  }
  std::cout << options.path << ": format " << kFormat << ", written by " << manifest.producer << "\n"
            << "state: " << manifest.state.size() << " tensors, " << size_text(static_cast<int64_t>(bytes_of(archive->state())))
            << (manifest.generators.empty() ? "" : cat("; random generators: ", manifest.generators.size())) << "\n";
  for (const auto& [key, value] : manifest.metadata) std::cout << key << " = " << value << "\n";
  for (const Function& function : archive->functions())
    std::cout << function.signature() << (function.dimensions.empty() ? "" : "\n    ") << function.ranges() << "\n    "
              << function.code.nodes.size() << " ops; changes " << function.updates.size()
              << " tensors of the state; samples: " << function.samples.size() << "\n";
  for (const Executable& executable : manifest.executables)
    std::cout << "executable of " << executable.function << " for: " << executable.target << "\n";
  return 0;
}

const NamedTensor& find(const std::vector<NamedTensor>& tensors, const std::string& name, const std::string& entry) {
  for (const NamedTensor& tensor : tensors) {
    if (tensor.name == name) return tensor;
  }
  fail(Code::kDataCorrupt, entry, " has no tensor ", name);
}

// Whether the function gives what the sample says.
bool check_sample(const std::shared_ptr<Model>& model, size_t index, const std::string& entry, const Options& options) {
  const Function& function = model->functions()[index];
  const std::vector<NamedTensor> sample = model->archive().sample(entry);
  std::vector<TensorView> inputs, results;
  std::vector<HostValue> found;
  for (const NamedType& input : function.inputs) {
    const NamedTensor& value = find(sample, "input." + input.name, entry);
    inputs.push_back(view_of(value.type, value.data.data()));
  }
  for (const TypeId type : results_of_call(function, inputs)) {
    found.push_back(allocate_host_value(type));
    results.push_back(view_of(type, found.back().data.get()));
  }
  Session(model).run(index, inputs, results);
  bool is_good = true;
  for (size_t i = 0; i < found.size(); ++i) {
    const NamedTensor& expected = find(sample, "result." + function.results[i].name, entry);
    if (expected.type != found[i].type)
      fail(Code::kDataCorrupt, entry, ": result ", function.results[i].name, " has another type");
    const HostValue value{expected.type, std::shared_ptr<void>(std::shared_ptr<void>(), const_cast<char*>(expected.data.data()))};
    const double tolerance = options.tolerance.value_or(tolerance_of(type_of(expected.type).dtype));
    const auto difference = compare_values(found[i], value, tolerance, magnitude_of(value));
    const bool is_same = std::memcmp(found[i].data.get(), expected.data.data(), expected.data.size()) == 0;
    std::cout << function.name << ": " << function.results[i].name << ": "
              << (difference ? "WRONG: " + difference_text(*difference, expected.type)
                  : is_same  ? "the same bits"
                             : "near enough")
              << "\n";
    is_good &= !difference;
  }
  return is_good;
}

std::shared_ptr<Model> load(const Options& options) {
  return Model::load(options.path, {options.backend, plugin_folders(), options.executables,
                                    options.trusts_graphs ? Graphs::kTrusted : Graphs::kChecked});
}

int check(const Options& options) {
  const auto begin = std::chrono::steady_clock::now();
  Archive::open(options.path, Graphs::kTrusted)->verify();
  const auto model = load(options);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (options.executables)
    std::cout << model->taken_executables() << " of " << model->functions().size()
              << " functions are executables of the archive\n";
  std::cout << "the file is whole; " << model->functions().size() << " functions are compiled for " << model->plugin_name()
            << ", in " << seconds.count() << " s\n";
  bool is_good = true;
  size_t samples = 0;
  for (size_t i = 0; i < model->functions().size(); ++i) {
    for (const std::string& entry : model->functions()[i].samples) {
      is_good &= check_sample(model, i, entry, options);
      ++samples;
    }
  }
  if (samples == 0) std::cout << "the archive has no samples: nothing was run\n";
  return is_good ? 0 : kNo;
}

// The manifest with the executables of the model's target, and none of it from before.
std::string manifest_with(const Model& model, const std::string& target, const std::string& folder) {
  const Archive& archive = model.archive();
  auto json = nlohmann::ordered_json::parse(archive.entry(kManifestEntry));
  auto executables = nlohmann::ordered_json::array();
  for (const Executable& one : archive.manifest().executables) {
    if (one.target != target) executables.push_back({{"function", one.function}, {"target", one.target}, {"entry", one.entry}});
  }
  for (const Function& function : model.functions())
    executables.push_back({{"function", function.name}, {"target", target}, {"entry", folder + function.name}});
  json["executables"] = std::move(executables);
  return json.dump(1) + "\n";
}

int compile(const Options& options) {
  const auto model = load(options);
  const Archive& archive = model->archive();
  const std::string target = model->target();
  std::ostringstream folder;
  folder << "executables/" << model->plugin_name() << "-" << std::hex << crc32_of(target) << "/";
  const std::string manifest = manifest_with(*model, target, folder.str());
  std::vector<std::string> executables;
  for (size_t i = 0; i < model->functions().size(); ++i) executables.push_back(model->save(i));
  std::vector<NewEntry> entries;
  for (const ZipEntry& entry : archive.entries()) {
    if (entry.name.starts_with(folder.str())) continue;
    entries.push_back({std::string(entry.name), {entry.name == kManifestEntry ? manifest : entry.data}});
  }
  size_t bytes = 0;
  for (size_t i = 0; i < executables.size(); ++i) {
    entries.push_back({folder.str() + model->functions()[i].name, {executables[i]}});
    bytes += executables[i].size();
  }
  write_zip(options.to.empty() ? options.path : options.to, entries);
  std::cout << executables.size() << " functions, " << size_text(static_cast<int64_t>(bytes)) << ", for: " << target << "\n";
  return 0;
}

int run(const std::vector<std::string>& words) {
  const Options options = read_options(words);
  return options.command == "show" ? show(options) : options.command == "check" ? check(options) : compile(options);
}

int main(const std::vector<std::string>& words) { return run_tool(words, kUsage, run); }

}  // namespace
}  // namespace ltc::deploy

int main(int argc, char** argv) { return ltc::deploy::main({argv + 1, argv + argc}); }
