// The kernels of a program's loops, compiled together, some by each thread, and requested once. Those of the same text are one,
// as in a network of equal layers.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "host_compiler/host_kernels.h"

namespace ltc::torchscript {

class TileProgram;

class ProgramKernels {
 public:
  using Function = host_compiler::HostModule::Function;

  // Both must outlive this.
  ProgramKernels(host_compiler::HostKernels& compiler, std::vector<TileProgram>& loops) : compiler_(compiler), loops_(loops) {}

  // Writes all of them, unless that is done. A loop has no kernels before.
  void write();
  // A kernel of the host vectors' dialect; returns its number. For TileProgram::write_kernels.
  size_t add(std::string text);

  // Null until it is compiled.
  Function function(size_t kernel) const { return modules_[kernel % modules_.size()]->function(kernel / modules_.size()); }
  // Notes that a cluster runs: so many instructions on elements. Compiling pays for clusters that run often or for long.
  void count_work(int64_t& work, int64_t instructions);

 private:
  void make_modules();

  host_compiler::HostKernels& compiler_;
  std::vector<TileProgram>& loops_;
  std::vector<std::string> texts_;
  std::unordered_map<std::string, size_t> numbers_;
  std::vector<std::shared_ptr<host_compiler::HostModule>> modules_;
  bool is_written_ = false, is_requested_ = false;
};

}  // namespace ltc::torchscript
