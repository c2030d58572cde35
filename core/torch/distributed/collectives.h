// Collectives as ops of a trace, library "ltc_c10d". Each is functional, takes the token of the group's last one and gives the
// next.
//
//   all_reduce(Tensor input, Tensor? after, str op, int group) -> (Tensor, Tensor token)          as input
//   broadcast(Tensor input, Tensor? after, int root, int group) -> (Tensor, Tensor token)         as input
//   all_gather(Tensor input, Tensor? after, int ranks, int group) -> (Tensor, Tensor token)       [ranks, ...input]
//   reduce_scatter(Tensor input, Tensor? after, str op, int group) -> (Tensor, Tensor token)      input [ranks, ...] -> [...]
//   all_to_all(Tensor input, Tensor? after, int[] to, int[] from_, int group) -> (Tensor, Tensor)
//                                                                          rows: [sum(to), ...] -> [sum(from_), ...]
//
// Each has a second form that only starts it, all_reduce_start and so on, for programs that go on meanwhile
// (compile/passes/overlap.h). Its result is complete behind
//
//   wait(Tensor pending, int group) -> Tensor
//
// `op`: "sum", "product", "min", "max", "band", "bor", "bxor". `group`: its number (groups.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

namespace ltc::collectives {

// The recorded ops, for the tensors of one group. They replace `token`.
struct Caller {
  int64_t group;
  std::optional<at::Tensor> token = {};

  at::Tensor all_reduce(const at::Tensor& input, const std::string& op);
  at::Tensor broadcast(const at::Tensor& input, int64_t root);
  at::Tensor all_gather(const at::Tensor& input, int64_t ranks);
  at::Tensor reduce_scatter(const at::Tensor& input, const std::string& op);
  at::Tensor all_to_all(const at::Tensor& input, std::vector<int64_t> to, std::vector<int64_t> from);
};

}  // namespace ltc::collectives
