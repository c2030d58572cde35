#include "cuda/lowering.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "cuda/blas.h"

namespace ltc::cuda {
namespace {

constexpr int kOldestWithF8 = 89;  // Ada

constexpr std::pair<std::string_view, bool Features::*> kNames[] = {
    {"coop_reduce", &Features::coop_reduce},
    {"split_reduce", &Features::split_reduce},
    {"block_sort", &Features::block_sort},
    {"attention", &Features::attention},
    {"attention_mma", &Features::attention_mma},
    {"cublas", &Features::cublas},
    {"cudnn", &Features::cudnn},
    {"epilogues", &Features::epilogues},
    {"fp8", &Features::fp8},
    {"nccl", &Features::nccl},
};

const kernels::Dialect& dialect_for(const Features& features) {
  static const kernels::Dialect plain = [] {
    kernels::Dialect dialect = kernels::cuda_dialect();
    dialect.device_threads = 0;
    return dialect;
  }();
  return features.coop_reduce ? kernels::cuda_dialect() : plain;
}

}  // namespace

Features features_without(const std::string& names) {
  Features features;
  std::string list = names;
  std::ranges::replace(list, ',', '+');  // which LTC_BACKEND has between options
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, '+');) {
    const auto found = std::ranges::find(kNames, word, [](const auto& row) { return row.first; });
    if (found == std::end(kNames)) {
      throw Failure(LTC_INVALID_ARGUMENT, "the option without names '" + word +
                                              "'; it may name coop_reduce, split_reduce, block_sort, attention, attention_mma, "
                                              "cublas, cudnn, epilogues, fp8 and nccl");
    }
    features.*(found->second) = false;
  }
  return features;
}

std::string disabled(const Features& features) {
  std::string names;
  for (const auto& [name, feature] : kNames) {
    if (!(features.*feature)) names += (names.empty() ? "" : ",") + std::string(name);
  }
  return names + (features.activations ? " with activations" : "");
}

Features chosen_features(const std::string& without, const std::string& with) {
  Features features = features_without(without);
  features.activations = with == "activations";
  return features;
}

Features features_of(Features features, int capability) {
  features.fp8 = features.fp8 && capability >= kOldestWithF8;
  return features;
}

device::Lowering lowering_for(const Features& features) {
  const kernels::Dialect& dialect = dialect_for(features);
  kernels::Options options{.abilities = {.fp64 = true},
                           .blas_operands = true,
                           .split_threads = features.split_reduce ? kernels::cuda_dialect().device_threads : 0,
                           .block_sorts = features.block_sort,
                           .check_indices = true,
                           .extras = {.attention = features.attention,
                                      .attention_mma = features.attention_mma,
                                      .convolution = features.cudnn,
                                      .scaled_product = features.cublas && features.fp8,
                                      .collectives = features.nccl},
                           .epilogues = {.bias = features.epilogues, .activations = features.epilogues && features.activations}};
  if (features.cublas) options.library_product = wants_blas;
  return {.dialect = dialect,
          .options = std::move(options),
          .elements_local = 256,
          .rows_local = 32,
          .checks_before_donations = true};
}

}  // namespace ltc::cuda
