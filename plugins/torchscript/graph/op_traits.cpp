#include "torchscript/graph/op_traits.h"

#include <c10/util/Exception.h>

#include <unordered_map>

namespace ltc::torchscript {
namespace {

constexpr auto kRowMajor = OperandLayout::kRowMajor, kPacked = OperandLayout::kPacked;
constexpr bool kAnyDevice = true, kAnyThreads = true, kAllThreads = false;

// Leaked, as what reads it may be: work may be left at the end of the process.
const std::vector<OpTraits>& rows() {
  static const auto& rows = *new std::vector<OpTraits>{
      // Kernels of ours that are faster than ATen's.
      {"aten::max_pool2d_with_indices", "ltc_torchscript::max_pool2d_with_indices"},
      {"aten::reshape", "ltc_torchscript::reshape"},
      {"aten::sum.dim_IntList", "ltc_torchscript::sum"},
      {"aten::mean.dim", "ltc_torchscript::mean"},
      {"aten::native_layer_norm", "ltc_torchscript::native_layer_norm"},
      {"aten::_softmax", "ltc_torchscript::_softmax"},
      {"aten::_scaled_dot_product_flash_attention_for_cpu", "ltc_torchscript::attention"},
      {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", "ltc_torchscript::attention_backward"},
      {"aten::_transformer_encoder_layer_fwd", "ltc_torchscript::transformer_encoder_layer_fwd"},
      {.name = "ltc_torchscript::max_pool2d_with_indices", .images = ImageTraits{0, {}, {0, 1}}},
      {.name = "ltc_torchscript::attention", .product = ProductCost{1, true, 1, 2, 2}},
      {.name = "ltc_torchscript::attention_backward", .product = ProductCost{5, false, 2, 2, 5}},
      // Many kernels in one: that nobody waits when it begins says nothing of when it ends.
      {.name = "ltc_torchscript::transformer_encoder_layer_fwd",
       .layout = kRowMajor,
       .any_threads = kAllThreads,
       .product = ProductCost{0, false, 3, 1, 12}},

      // Those that choose_kernels chooses.
      {.name = "ltc_torchscript::winograd_convolution",
       .product = ProductCost{0, true, 1, 1, 1},
       .images = ImageTraits{kAlways, {0}, {0}}},
      {.name = "ltc_torchscript::winograd_convolution_backward",
       .product = ProductCost{0, false, 2, 1, 2},
       .images = ImageTraits{kAlways, {0, 1}, {0}}},
      {.name = "ltc_torchscript::wide_convolution_backward",
       .product = ProductCost{0, false, 2, 1, 2},
       .images = ImageTraits{kAlways, {0, 1, 2}, {0}}},

      // Those that pack_weights makes of convolutions.
      {.name = "ltc_torchscript::pack_convolution", .makes_forms = true},
      {.name = "ltc_torchscript::packed_convolution",
       .any_threads = kAllThreads,
       .product = ProductCost{0, true, 1, 1, 1},
       .images = ImageTraits{kAlways, {0}, {0}}},
      {.name = "ltc_torchscript::packed_winograd_convolution",
       .product = ProductCost{0, true, 1, 1, 4},
       .images = ImageTraits{kAlways, {0}, {0}}},
      {.name = "ltc_torchscript::convolution_by_matrix",
       .product = ProductCost{0, true, 1, 1, 1},
       .images = ImageTraits{kAlways, {0}, {0}}},

      // They work on the row-major contents of their operand, where ATen's own operators would look at its strides.
      {"ltc::philox", "ltc_torchscript::philox", kAnyDevice},
      {"aten::view", "ltc_torchscript::view", kAnyDevice},
      {"aten::_unsafe_view", "ltc_torchscript::view", kAnyDevice},
      {"aten::view.dtype", "ltc_torchscript::view_dtype", kAnyDevice},
      {"aten::view_as_complex", "ltc_torchscript::view_as_complex", kAnyDevice},
      {"aten::as_strided", "ltc_torchscript::as_strided", kAnyDevice},
      {"aten::as_strided_copy", "ltc_torchscript::as_strided", kAnyDevice},
      {"aten::as_strided_scatter", "ltc_torchscript::as_strided_scatter", kAnyDevice},
      {"ltc::as_strided", "ltc_torchscript::as_strided_at", kAnyDevice},
      {"ltc::as_strided_scatter", "ltc_torchscript::as_strided_scatter_at", kAnyDevice},

      // Products and recurrent layers.
      {.name = "aten::mm", .any_threads = kAnyThreads, .product = ProductCost{0, false, 1, 1, 1}},
      {.name = "aten::addmm", .any_threads = kAnyThreads, .product = ProductCost{1, false, 2, 1, 1}},
      {.name = "aten::bmm", .product = ProductCost{0, false, 1, 2, 1}},
      {.name = "aten::baddbmm", .product = ProductCost{1, false, 2, 2, 1}},
      {.name = "ltc::lstm_layer", .product = ProductCost{1, false, 4, 1, 4, true}},
      {.name = "ltc::lstm_layer_backward", .product = ProductCost{4, false, 7, 1, 4, true}},
      {.name = "ltc::gru_layer", .product = ProductCost{1, false, 3, 1, 3, true}},
      {.name = "ltc::gru_layer_backward", .product = ProductCost{3, false, 5, 1, 3, true}},
      {.name = "ltc::packed_lstm_layer", .product = ProductCost{1, false, 4, 1, 4, true}},
      {.name = "ltc::packed_lstm_layer_backward", .product = ProductCost{4, false, 7, 1, 4, true}},
      {.name = "ltc::packed_gru_layer", .product = ProductCost{1, false, 3, 1, 3, true}},
      {.name = "ltc::packed_gru_layer_backward", .product = ProductCost{3, false, 5, 1, 3, true}},
      {.name = "ltc::packed_rnn_layer", .product = ProductCost{1, false, 3, 1, 1, true}},
      {.name = "ltc::packed_rnn_layer_backward", .product = ProductCost{3, false, 5, 1, 1, true}},

      // Images.
      {.name = "aten::convolution", .product = ProductCost{0, true, 1, 1, 1}, .images = ImageTraits{0, {0, 1}, {0}, 1}},
      {.name = "aten::convolution_backward",
       .product = ProductCost{0, false, 2, 1, 2},
       .images = ImageTraits{1, {0, 1, 2}, {0}, 2}},
      {.name = "aten::native_batch_norm", .layout = kPacked, .images = ImageTraits{0, {}, {0}}},
      {.name = "aten::_native_batch_norm_legit_functional", .layout = kPacked, .images = ImageTraits{0, {}, {0}}},
      {.name = "aten::_native_batch_norm_legit_no_training", .images = ImageTraits{0, {}, {0}}},
      {.name = "aten::native_batch_norm_backward", .layout = kPacked, .images = ImageTraits{1, {0}, {0}}},
      {.name = "aten::max_pool2d_with_indices_backward", .any_threads = kAnyThreads, .images = ImageTraits{1, {0, 7}, {0}}},
      {.name = "aten::threshold_backward", .images = ImageTraits{1, {0}, {0}}},
      {.name = "aten::avg_pool2d", .images = ImageTraits{0, {}, {0}}},
      {.name = "aten::avg_pool2d_backward", .images = ImageTraits{1, {0}, {0}}},
      {.name = "aten::_adaptive_avg_pool2d", .images = ImageTraits{0, {}, {0}}},
      {.name = "aten::_adaptive_avg_pool2d_backward", .images = ImageTraits{1, {0}, {0}}},

      // Results are the same from any number of threads.
      {.name = "aten::cat", .any_threads = kAnyThreads},
      {.name = "aten::stack", .any_threads = kAnyThreads},
      {.name = "aten::clone", .any_threads = kAnyThreads},
      {.name = "aten::contiguous", .any_threads = kAnyThreads},
      {.name = "aten::_to_copy", .any_threads = kAnyThreads},
      {.name = "aten::_log_softmax", .any_threads = kAnyThreads},
      {.name = "aten::_log_softmax_backward_data", .any_threads = kAnyThreads},
      {.name = "aten::_softmax_backward_data", .any_threads = kAnyThreads},

      // ATen's kernels that take a layout for granted.
      {.name = "aten::native_layer_norm_backward", .layout = kRowMajor},
      {.name = "aten::native_group_norm", .layout = kRowMajor},
      {.name = "aten::native_group_norm_backward", .layout = kRowMajor},
      {.name = "aten::_weight_norm_interface", .layout = kRowMajor},
      {.name = "aten::_weight_norm_interface_backward", .layout = kRowMajor},
      {.name = "aten::_pdist_forward", .layout = kRowMajor},
      {.name = "aten::_pdist_backward", .layout = kRowMajor},
      {.name = "aten::_embedding_bag", .layout = kRowMajor},
      {.name = "aten::_embedding_bag_forward_only", .layout = kRowMajor},
      {.name = "aten::_embedding_bag_backward", .layout = kRowMajor},
      {.name = "aten::_embedding_bag_dense_backward", .layout = kRowMajor},
      {.name = "aten::_embedding_bag_per_sample_weights_backward", .layout = kRowMajor},
      {.name = "aten::nll_loss2d_backward", .layout = kRowMajor},
      {.name = "aten::_linalg_det", .layout = kRowMajor},  // factorizes the transpose of what is row-major
      {.name = "aten::_linalg_slogdet", .layout = kRowMajor},
      {.name = "aten::_native_multi_head_attention", .layout = kRowMajor},
      {.name = "aten::_transform_bias_rescale_qkv", .layout = kRowMajor},
      {.name = "aten::adaptive_max_pool2d_backward", .layout = kRowMajor},
      {.name = "aten::adaptive_max_pool3d_backward", .layout = kRowMajor},
      {.name = "aten::max_pool3d_with_indices", .layout = kRowMajor},
      {.name = "aten::max_pool3d_with_indices_backward", .layout = kRowMajor},
      {.name = "aten::fractional_max_pool2d_backward", .layout = kRowMajor},
      {.name = "aten::fractional_max_pool3d_backward", .layout = kRowMajor},
      {.name = "aten::_native_batch_norm_legit", .layout = kPacked},
      {.name = "aten::_batch_norm_with_update", .layout = kPacked},
      {.name = "aten::_batch_norm_with_update_functional", .layout = kPacked},
      {.name = "aten::_batch_norm_no_update", .layout = kPacked},
      {.name = "aten::batch_norm_backward", .layout = kPacked},
  };
  return rows;
}

}  // namespace

const OpTraits& traits_of(std::string_view name) {
  static const auto& by_name = *[] {
    auto* const map = new std::unordered_map<std::string_view, const OpTraits*>();
    for (const OpTraits& row : rows()) TORCH_INTERNAL_ASSERT(map->emplace(row.name, &row).second, row.name, " has two rows");
    return map;
  }();
  static const OpTraits none;
  const auto found = by_name.find(name);
  return found == by_name.end() ? none : *found->second;
}

}  // namespace ltc::torchscript
