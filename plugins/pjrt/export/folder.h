// The folder of modules and golden values: its index, and how it is written and run.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "conformance/ops/cases.h"
#include "conformance/ops/inputs.h"

namespace ltc::pjrt {

// An array in a file.
struct Tensor {
  std::string file;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  conformance::Tolerance tolerance = {};  // of outputs
};

struct ModuleEntry {
  std::string name;   // "neg_f32.0"
  std::string check;  // of ltc-conformance: "Ops.neg_f32"
  std::string op;     // "aten::neg", or the check's name for programs
  std::string graph;  // the text that was lowered
  std::string file;
  std::vector<Tensor> inputs, outputs;
};

struct NotExported {
  std::string name, reason;
};

struct Index {
  std::vector<ModuleEntry> modules;
  std::vector<NotExported> not_exported;
};

void write_index(const std::filesystem::path& folder, const Index& index);
Index read_index(const std::filesystem::path& folder);  // throws ltc::Error

// A graph that is to be exported. Expected values are those of the reference graph.
struct Source {
  std::string name, check, op;
  Graph graph, reference;
  std::string_view fills;
  conformance::Tolerance tolerance;
};

// The cases of the ops tier whose names match, in its order. An op that the lowering does not take whole is taken apart.
std::vector<Source> sources(const std::string& pattern);
// Writes the files of a graph, or a reason why it is not exported.
void export_source(const std::filesystem::path& folder, const Source& source, Index& index);
// Writes a whole folder, which must be empty or absent.
Index export_folder(const std::filesystem::path& folder, const std::string& pattern);

extern const char* const kFolderReadme;

// Runs the modules of a folder whose names match on a PJRT library. `report` gets each name with a sentence, empty if it passed.
void run_folder(const std::string& library, const std::filesystem::path& folder, const std::string& pattern,
                const std::function<void(const std::string& name, const std::string& wrong)>& report);

bool matches(const std::string& name, const std::string& pattern);  // with * and ?, as in a shell

}  // namespace ltc::pjrt
