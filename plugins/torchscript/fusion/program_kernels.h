// The kernels of a program, compiled together, some by each thread, and requested once. Those of the same text are one, as in a
// network of equal layers.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "host_compiler/host_kernels.h"

namespace ltc::torchscript {

class ProgramKernels {
 public:
  using Function = host_compiler::HostModule::Function;

  // `compiler` must outlive this.
  explicit ProgramKernels(host_compiler::HostKernels& compiler) : compiler_(compiler) {}

  // A kernel of the host vectors' dialect; returns its number. None after finish().
  size_t add(std::string text);
  void finish();

  // Null until it is compiled.
  Function function(size_t kernel) const { return modules_[kernel % modules_.size()]->function(kernel / modules_.size()); }
  // Notes that a cluster runs: so many instructions on elements. Compiling pays for clusters that run often or for long.
  void count_work(int64_t& work, int64_t instructions);

 private:
  host_compiler::HostKernels& compiler_;
  std::vector<std::string> texts_;
  std::unordered_map<std::string, size_t> numbers_;
  std::vector<std::shared_ptr<host_compiler::HostModule>> modules_;
  bool is_requested_ = false;
};

}  // namespace ltc::torchscript
