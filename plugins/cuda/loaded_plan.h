// A compiled plan's kernels and calls of libraries, ready to run on a device; a step that comes again with the same memory is one
// launch.
#pragma once
#include <algorithm>
#include <list>
#include <vector>

#include "cuda/driver.h"

namespace ltc::cuda {

// The arguments of one kernel, as a launch takes them. Addresses stay valid when it moves.
class Arguments {
 public:
  explicit Arguments(const device::Launch& launch);
  Arguments(Arguments&&) = default;
  // Whether a scalar differs from what it was last set to.
  bool set_scalars(const device::Launch& launch, const device::Run& run);
  void set_buffers(const device::Launch& launch, const device::Run& run);
  void** pointers() { return pointers_.data(); }

 private:
  std::vector<uint64_t> values_;  // buffers, scalars, integers
  std::vector<void*> pointers_;
};

class LoadedPlan : public device::LoadedPlan {
 public:
  LoadedPlan(Driver& driver, std::shared_ptr<const device::CompiledPlan> compiled_plan, std::span<const std::string> binaries);
  ~LoadedPlan() override;

  device::EventRef submit(const device::Run& run) override;
  std::vector<std::string> binaries() const override;

 private:
  // The launches that a run submits at once, and the addresses that they work on.
  struct Part {
    size_t begin, end;
    std::vector<device::Memory> memory;  // inputs, outputs, slots
    bool operator==(const Part&) const = default;
  };
  // A part as a CUDA graph.
  using Graph = std::unique_ptr<CUgraph_st, decltype(DriverApi::cuGraphDestroy)>;
  struct ExecGraph {
    Part part;
    Graph graph;  // whose nodes name what is changed in the executable
    CUgraphExec executable;
    std::vector<CUgraphNode> nodes;    // by launch of the part; null: a library's
    std::vector<Arguments> arguments;  // likewise, as the nodes have them
  };

  device::EventRef recorded(std::string what);
  size_t end_of(const device::Run& run) const { return std::min(run.end, compiled_plan_->launches.size()); }
  void launch_each(const device::Run& run);
  void launch(size_t i, const device::Run& run);
  CUresult launch_library_now(size_t i, const device::Run& run) const;
  // The graph of the run's part, if there is one, or if it is worth making one.
  ExecGraph* graph_for(const device::Run& run);
  void make_graph(Part part, const device::Run& run);
  CUgraphNode add_kernel(CUgraph graph, const CUgraphNode* after, size_t i, Arguments& arguments) const;
  CUgraphNode add_library(CUgraph graph, const CUgraphNode* after, size_t i, const device::Run& run) const;
  void launch_graph(ExecGraph& graph, const device::Run& run);
  void launch_library(size_t i, const device::Run& run, CUstream stream) const;
  CUDA_KERNEL_NODE_PARAMS node_params(size_t i, Arguments& arguments) const;
  uint32_t blocks(const device::Launch& launch) const;

  Driver& driver_;
  const std::shared_ptr<const device::CompiledPlan> compiled_plan_;
  std::vector<ModuleRef> modules_;                         // by source
  std::vector<std::shared_ptr<const LibraryCall>> calls_;  // of the compiled plan
  std::vector<int64_t> members_of_;                        // groups of its collectives: such runs become no graphs
  std::vector<Arguments> arguments_;                       // by launch
  const size_t most_graphs_;
  std::list<ExecGraph> graphs_;  // the one used last first
  std::list<Part> seen_;         // of late runs, without a graph, the last first
};

}  // namespace ltc::cuda
