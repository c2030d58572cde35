// Writes the cases of the ops tier.
#include "conformance/ops/reference.h"
#include "core/compile/lowering/abi_graph.h"
#include "core/decompose/decompose.h"
#include "core/ir/text.h"
#include "ltc/plugin.hpp"
#include "pjrt/export/folder.h"
#include "pjrt/export/npy.h"
#include "pjrt/stablehlo/lower.h"

namespace ltc::pjrt {
namespace {

using conformance::Tolerance;

std::vector<uint32_t> claims(const Graph& graph) {
  std::vector<uint32_t> clusters(graph.nodes.size());
  claim(*AbiGraph(graph).get(), clusters.data());
  return clusters;
}

Tensor write(const std::filesystem::path& folder, std::string file, const Array& array, Tolerance tolerance = {}) {
  write_npy(folder / file, array);
  return {std::move(file), array.dtype, array.sizes, tolerance};
}

// Those that the reference computes by their decomposition.
void add(std::vector<Source>& all, const char* suite, std::span<const conformance::ProgramCase> rows,
         const std::string& pattern) {
  for (const conformance::ProgramCase& row : rows) {
    const std::string check = cat(suite, ".", row.name),
                      name = cat(suite == std::string("Programs") ? "program." : "derived.", row.name);
    if (!matches(name, pattern)) continue;
    Graph graph = parse(row.graph);
    Graph reference = decompose::minimal_form(graph);
    decompose::decompose(graph, claims);
    all.push_back({name, check, std::string(row.name), std::move(graph), std::move(reference), row.fills, row.tolerance});
  }
}

}  // namespace

std::vector<Source> sources(const std::string& pattern) {
  std::vector<Source> all;
  for (const conformance::OpCase& row : conformance::op_cases()) {
    for (const DType dtype : conformance::dtypes_of(row.dtypes)) {
      const std::string case_name = conformance::case_name(row.op, dtype);
      size_t i = 0;
      for (const std::string& text : conformance::graphs_of(row, dtype)) {
        const std::string name = cat(case_name, ".", i++);
        if (!matches(name, pattern)) continue;
        const Graph graph = parse(text);
        all.push_back({name, "Ops." + case_name, std::string(row.op), graph, graph, row.fills, row.tolerance});
      }
    }
  }
  add(all, "OpsDerived", conformance::derived_cases(), pattern);
  add(all, "Programs", conformance::program_cases(), pattern);
  return all;
}

void export_source(const std::filesystem::path& folder, const Source& source, Index& index) {
  Lowered lowered;
  try {
    lowered = lower(*AbiGraph(source.graph).get());
  } catch (const plugin::Failure& failure) {
    const uint32_t node = failure.error().node;
    const std::string where = node < source.graph.nodes.size() ? cat(op_name(source.graph.nodes[node].op), " ") : "";
    index.not_exported.push_back({source.name, where + failure.what()});
    return;
  }
  const conformance::Inputs inputs = conformance::inputs_for(source.graph, source.fills);
  std::vector<Array> arrays = inputs.arrays;
  std::vector<Array> expected = conformance::evaluate(source.reference, inputs.arrays, inputs.scalars);
  std::vector<int64_t> bits;
  for (const Scalar& scalar : inputs.scalars) bits.push_back(scalar.i);
  if (!bits.empty()) arrays.push_back(Array::of(DType::kI64, {static_cast<int64_t>(bits.size())}, bits));
  ModuleEntry entry{source.name, source.check, source.op, print(source.graph), source.name + ".mlir", {}, {}};
  write_file(folder / entry.file, lowered.text);
  const auto file = [&](const char* kind, size_t i) { return cat(source.name, ".", kind, i, ".npy"); };
  for (size_t i = 0; i < arrays.size(); ++i) entry.inputs.push_back(write(folder, file("in", i), arrays[i]));
  for (size_t i = 0; i < expected.size(); ++i) {
    entry.outputs.push_back(write(folder, file("out", i), expected[i], source.tolerance));
  }
  if (!lowered.signature.checks.empty()) {  // no index is bad
    const Array none = Array::of<int64_t>(DType::kI64, {2}, {-1, -1});
    entry.outputs.push_back(write(folder, file("out", expected.size()), none));
  }
  index.modules.push_back(std::move(entry));
}

Index export_folder(const std::filesystem::path& folder, const std::string& pattern) {
  std::filesystem::create_directories(folder);
  if (!std::filesystem::is_empty(folder)) fail(Code::kInvalidArgument, folder.string(), " is not empty");
  const std::vector<Source> all = sources(pattern);
  if (all.empty()) fail(Code::kInvalidArgument, "no case is called ", pattern);
  Index index;
  for (const Source& source : all) export_source(folder, source, index);
  write_file(folder / "README.md", kFolderReadme);
  write_index(folder, index);
  return index;
}

}  // namespace ltc::pjrt
