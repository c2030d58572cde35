#include "cuda/lowering.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "cuda/blas.h"

namespace ltc::cuda {
namespace {

constexpr int kOldestWithF8 = 89;  // Ada

constexpr std::pair<std::string_view, bool Ways::*> kNames[] = {
    {"blocks", &Ways::blocks},
    {"pieces", &Ways::pieces},
    {"sorts", &Ways::sorts},
    {"attention", &Ways::attention},
    {"attention_mma", &Ways::attention_mma},
    {"cublas", &Ways::cublas},
    {"cudnn", &Ways::cudnn},
    {"epilogues", &Ways::epilogues},
    {"fp8", &Ways::fp8},
};

const kernels::Dialect& dialect_for(const Ways& ways) {
  static const kernels::Dialect plain = [] {
    kernels::Dialect dialect = kernels::cuda_dialect();
    dialect.device_threads = 0;
    return dialect;
  }();
  return ways.blocks ? kernels::cuda_dialect() : plain;
}

}  // namespace

Ways ways_without(const std::string& names) {
  Ways ways;
  std::istringstream words(names);
  for (std::string word; std::getline(words, word, ',');) {
    const auto found = std::ranges::find(kNames, word, [](const auto& row) { return row.first; });
    if (found == std::end(kNames)) {
      throw Failure(LTC_INVALID_ARGUMENT,
                    "LTC_CUDA_WITHOUT names '" + word +
                        "'; it may name blocks, pieces, sorts, attention, attention_mma, cublas, cudnn, epilogues and fp8");
    }
    ways.*(found->second) = false;
  }
  return ways;
}

std::string left_out(const Ways& ways) {
  std::string names;
  for (const auto& [name, way] : kNames) {
    if (!(ways.*way)) names += (names.empty() ? "" : ",") + std::string(name);
  }
  return names + (ways.activations ? " with activations" : "");
}

Ways chosen_ways() {
  const char* without = std::getenv("LTC_CUDA_WITHOUT");
  const char* with = std::getenv("LTC_CUDA_WITH");
  Ways ways = ways_without(without ? without : "");
  ways.activations = with && std::string_view(with) == "activations";
  if (with && *with && !ways.activations) {
    throw Failure(LTC_INVALID_ARGUMENT, "LTC_CUDA_WITH is '" + std::string(with) + "'; it may be activations");
  }
  return ways;
}

Ways ways_of(Ways ways, int capability) {
  ways.fp8 = ways.fp8 && capability >= kOldestWithF8;
  return ways;
}

device::Lowering lowering_for(const Ways& ways) {
  const kernels::Dialect& dialect = dialect_for(ways);
  kernels::Options options{.abilities = {.fp64 = true},
                           .blas_operands = true,
                           .split_threads = ways.pieces ? kernels::cuda_dialect().device_threads : 0,
                           .block_sorts = ways.sorts,
                           .check_indices = true,
                           .extras = {.attention = ways.attention,
                                      .attention_mma = ways.attention_mma,
                                      .convolution = ways.cudnn,
                                      .scaled_product = ways.cublas && ways.fp8},
                           .epilogues = {.bias = ways.epilogues, .activations = ways.epilogues && ways.activations}};
  if (ways.cublas) options.library_product = wants_blas;
  return {.dialect = dialect,
          .options = std::move(options),
          .elements_local = 256,
          .rows_local = 32,
          .checks_before_donations = true};
}

}  // namespace ltc::cuda
