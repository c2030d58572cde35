// Derived ops that plugins like to claim whole, and programs of several.
#include "conformance/ops/cases.h"

namespace ltc::conformance {
namespace {

constexpr Tolerance kMath{32, 1}, kLong{256, 1};

constexpr ProgramCase kDerived[] = {
    {"relu", {1, 0}, "a", "graph(%0: f32[50]) { %1: f32[50] = aten::relu(%0) return %1 }"},
    {"sigmoid", kMath, "f", "graph(%0: f32[50]) { %1: f32[50] = aten::sigmoid(%0) return %1 }"},
    {"silu", kMath, "f", "graph(%0: f32[50]) { %1: f32[50] = aten::silu(%0) return %1 }"},
    {"gelu", kMath, "f", "graph(%0: f32[50]) { %1: f32[50] = aten::gelu(%0) {approximate=\"none\"} return %1 }"},
    {"gelu_tanh", kMath, "f", "graph(%0: f32[50]) { %1: f32[50] = aten::gelu(%0) {approximate=\"tanh\"} return %1 }"},
    {"threshold_backward",
     {},
     "s",
     "graph(%0: f32[50], %1: f32[50]) { %2: f32[50] = aten::threshold_backward(%0, %1) {threshold=0} return %2 }"},
    {"reciprocal", {2, 0}, "p", "graph(%0: f32[50]) { %1: f32[50] = aten::reciprocal(%0) return %1 }"},
    {"rsqrt", {4, 0}, "p", "graph(%0: f32[50]) { %1: f32[50] = aten::rsqrt(%0) return %1 }"},
    {"sub", {}, "f", "graph(%0: f32[5,1], %1: f32[4]) { %2: f32[5,4] = aten::sub.Tensor(%0, %1) {alpha=1} return %2 }"},
    {"add_of_a_number",
     {1, 0},
     "f",
     "graph(%0: f32[50], %1: f64 scalar) { %2: f32[50] = aten::add.Tensor(%0, %1) {alpha=1} return %2 }"},
    {"mul_of_two_dtypes", {1, 0}, "s", "graph(%0: f32[50], %1: i64[50]) { %2: f32[50] = aten::mul.Tensor(%0, %1) return %2 }"},
    {"addcmul",
     {8, 1},
     "u",
     "graph(%0: f32[50], %1: f32[50], %2: f32[50]) { %3: f32[50] = aten::addcmul(%0, %1, %2) {value=1} return %3 }"},
    {"addcdiv",
     {8, 1},
     "p",
     "graph(%0: f32[50], %1: f32[50], %2: f32[50]) { %3: f32[50] = aten::addcdiv(%0, %1, %2) {value=1} return %3 }"},
    {"clamp", {}, "f", "graph(%0: f32[50]) { %1: f32[50] = aten::clamp(%0) {min=-1.0,max=1.0} return %1 }"},
    {"masked_fill",
     {},
     "fa",
     "graph(%0: f32[50], %1: bool[50]) { %2: f32[50] = aten::masked_fill.Scalar(%0, %1) {value=-3.0} return %2 }"},
    {"mm", kMath, "s", "graph(%0: f32[7,9], %1: f32[9,5]) { %2: f32[7,5] = aten::mm(%0, %1) return %2 }"},
    {"addmm", kMath, "s",
     "graph(%0: f32[5], %1: f32[7,9], %2: f32[9,5]) { %3: f32[7,5] = aten::addmm(%0, %1, %2) {beta=1,alpha=1} return %3 }"},
    {"baddbmm", kMath, "s",
     "graph(%0: f32[2,7,5], %1: f32[2,7,9], %2: f32[2,9,5]) { %3: f32[2,7,5] = aten::baddbmm(%0, %1, %2) {beta=1,alpha=1} return "
     "%3 }"},
    {"softmax", kMath, "f", "graph(%0: f32[6,11]) { %1: f32[6,11] = aten::_softmax(%0) {dim=1,half_to_float=false} return %1 }"},
    {"softmax_of_the_first_dim", kMath, "f",
     "graph(%0: f32[6,11]) { %1: f32[6,11] = aten::_softmax(%0) {dim=0,half_to_float=false} return %1 }"},
    {"log_softmax", kLong, "f",
     "graph(%0: f32[6,11]) { %1: f32[6,11] = aten::_log_softmax(%0) {dim=1,half_to_float=false} return %1 }"},
    {"mean", kMath, "f", "graph(%0: f32[6,11]) { %1: f32[6] = aten::mean.dim(%0) {dim=[1],keepdim=false} return %1 }"},
    {"var", kLong, "u",
     "graph(%0: f32[6,11]) { %1: f32[6] = aten::var.correction(%0) {dim=[1],correction=1,keepdim=false} return %1 }"},
    {"max_over_a_dim",
     {},
     "f",
     "graph(%0: f32[6,11]) { %1: f32[6], %2: i64[6] = aten::max.dim(%0) {dim=1,keepdim=false} return %1, %2 }"},
    {"mse_loss", kMath, "u", "graph(%0: f32[6,5], %1: f32[6,5]) { %2: f32[] = aten::mse_loss(%0, %1) {reduction=1} return %2 }"},
    {"layer_norm", kLong, "u",
     "graph(%0: f32[6,11], %1: f32[11], %2: f32[11]) { %3: f32[6,11], %4: f32[6,1], %5: f32[6,1] = "
     "aten::native_layer_norm(%0, %1, %2) {normalized_shape=[11],eps=1e-5} return %3, %4, %5 }"},
    {"max_pool2d",
     {},
     "f",
     "graph(%0: f32[2,3,8,8]) { %1: f32[2,3,4,4], %2: i64[2,3,4,4] = aten::max_pool2d_with_indices(%0) "
     "{kernel_size=[2,2],stride=[2,2],padding=[0,0],dilation=[1,1],ceil_mode=false} return %1, %2 }"},
    {"avg_pool2d", kMath, "u",
     "graph(%0: f32[2,3,8,8]) { %1: f32[2,3,4,4] = aten::avg_pool2d(%0) "
     "{kernel_size=[2,2],stride=[2,2],padding=[0,0],ceil_mode=false,count_include_pad=true,divisor_override=none} return %1 }"},
    {"embedding",
     {},
     "fc",
     "graph(%0: f32[8,5], %1: i64[3,4]) { %2: f32[3,4,5] = aten::embedding(%0, %1) "
     "{padding_idx=-1,scale_grad_by_freq=false,sparse=false} return %2 }"},
    {"index_select",
     {},
     "fc",
     "graph(%0: f32[8,5], %1: i64[12]) { %2: f32[12,5] = aten::index_select(%0, %1) {dim=0} return %2 }"},
    {"stack",
     {},
     "f",
     "graph(%0: f32[3,4], %1: f32[3,4]) { %2: f32[3,2,4] = aten::stack(%0, %1) {tensors.count=2,dim=1} return %2 }"},
    {"repeat", {}, "f", "graph(%0: f32[3,4]) { %1: f32[2,9,4] = aten::repeat(%0) {repeats=[2,3,1]} return %1 }"},
    {"roll", {}, "f", "graph(%0: f32[3,4]) { %1: f32[3,4] = ltc::roll(%0) {shift=-5,dim=1} return %1 }"},
    {"as_strided_by_value",
     {},
     "f",
     "graph(%0: f32[20]) { %1: f32[3,4] = ltc::as_strided(%0) {size=[3,4],stride=[4,2],storage_offset=5} return %1 }"},
    {"as_strided_scatter_by_value",
     {},
     "ff",
     "graph(%0: f32[20], %1: f32[3,4]) { %2: f32[20] = ltc::as_strided_scatter(%0, %1) "
     "{size=[3,4],stride=[5,1],storage_offset=6} return %2 }"},
    {"tril", {}, "f", "graph(%0: f32[4,5]) { %1: f32[4,5] = aten::tril(%0) {diagonal=0} return %1 }"},
    {"convolution_with_bias", kMath, "u",
     "graph(%0: f32[2,2,10], %1: f32[3,2,3], %2: f32[3]) { %3: f32[2,3,8] = aten::convolution(%0, %1, %2) "
     "{stride=[1],padding=[0],dilation=[1],transposed=false,output_padding=[0],groups=1} return %3 }"},
    {"to_copy_f32_f16", {}, "a", "graph(%0: f32[200]) { %1: f16[200] = aten::_to_copy(%0) {dtype=f16} return %1 }"},
    {"to_copy_f32_bf16", {}, "a", "graph(%0: f32[200]) { %1: bf16[200] = aten::_to_copy(%0) {dtype=bf16} return %1 }"},
    {"to_copy_f64_f32", {}, "a", "graph(%0: f64[200]) { %1: f32[200] = aten::_to_copy(%0) {dtype=f32} return %1 }"},
    {"to_copy_f32_i32", {}, "f", "graph(%0: f32[200]) { %1: i32[200] = aten::_to_copy(%0) {dtype=i32} return %1 }"},
    {"logsumexp", kLong, "f", "graph(%0: f32[6,11]) { %1: f32[6] = aten::logsumexp(%0) {dim=[1],keepdim=false} return %1 }"},
};

constexpr ProgramCase kPrograms[] = {
    {"mlp_step", kLong, "u", R"(graph(%0: f32[8,6], %1: f32[6,5], %2: f32[5], %3: f32[5,3], %4: f32[8,3], %5: f64 scalar) {
      %6: f32[8,5] = aten::addmm(%2, %0, %1) {beta=1,alpha=1}
      %7: f32[8,5] = aten::relu(%6)
      %8: f32[8,3] = aten::mm(%7, %3)
      %9: f32[8,3] = aten::sub.Tensor(%8, %4) {alpha=1}
      %10: f32[8,3] = aten::mul.Tensor(%9, %9)
      %11: f32[] = aten::sum.dim_IntList(%10) {dim=[0,1],keepdim=false,dtype=f32}
      %12: f32[5,8] = aten::permute(%7) {dims=[1,0]}
      %13: f32[5,3] = aten::mm(%12, %9)
      %14: f32[3,5] = aten::permute(%3) {dims=[1,0]}
      %15: f32[8,5] = aten::mm(%9, %14)
      %16: f32[8,5] = aten::threshold_backward(%15, %6) {threshold=0}
      %17: f32[6,8] = aten::permute(%0) {dims=[1,0]}
      %18: f32[6,5] = aten::mm(%17, %16)
      %19: f32[5,3] = aten::mul.Tensor(%13, %5)
      %20: f32[5,3] = aten::sub.Tensor(%3, %19) {alpha=1}
      %21: f32[6,5] = aten::mul.Tensor(%18, %5)
      %22: f32[6,5] = aten::sub.Tensor(%1, %21) {alpha=1}
      return %11, %20, %22 })"},
    {"convnet_forward", kLong, "u", R"(graph(%0: f32[2,1,8,8], %1: f32[4,1,3,3], %2: f32[64,3]) {
      %3: f32[2,4,8,8] = aten::convolution(%0, %1, none)
        {stride=[1,1],padding=[1,1],dilation=[1,1],transposed=false,output_padding=[0,0],groups=1}
      %4: f32[2,4,8,8] = aten::relu(%3)
      %5: f32[2,4,4,4] = aten::avg_pool2d(%4)
        {kernel_size=[2,2],stride=[2,2],padding=[0,0],ceil_mode=false,count_include_pad=true,divisor_override=none}
      %6: f32[2,64] = aten::reshape(%5) {shape=[2,64]}
      %7: f32[2,3] = aten::mm(%6, %2)
      %8: f32[2,3] = aten::_log_softmax(%7) {dim=1,half_to_float=false}
      return %8 })"},
    {"convolution_and_its_gradient", kLong, "u", R"(graph(%0: f32[2,3,6,6], %1: f32[4,3,3,3], %2: f32[2,4,6,6]) {
      %3: f32[2,3,6,6] = aten::convolution(%2, %1, none)
        {stride=[1,1],padding=[1,1],dilation=[1,1],transposed=true,output_padding=[0,0],groups=1}
      %4: f32[3,2,6,6] = aten::permute(%0) {dims=[1,0,2,3]}
      %5: f32[4,2,6,6] = aten::permute(%2) {dims=[1,0,2,3]}
      %6: f32[3,4,3,3] = aten::convolution(%4, %5, none)
        {stride=[1,1],padding=[1,1],dilation=[1,1],transposed=false,output_padding=[0,0],groups=1}
      %7: f32[4,3,3,3] = aten::permute(%6) {dims=[1,0,2,3]}
      return %3, %7 })"},
    {"gradients_of_a_matrix_and_its_vector", kMath, "u", R"(graph(%0: f32[5,10], %1: f32[10], %2: f32[5]) {
      %3: f32[5,1] = aten::reshape(%2) {shape=[5,1]}
      %4: f32[5,10] = aten::mul.Tensor(%3, %1)
      %5: f32[10,5] = aten::permute(%0) {dims=[1,0]}
      %6: f32[10,1] = aten::mm(%5, %3)
      return %4, %6 })"},
    {"magnitude_of_complex_numbers", kMath, "u", R"(graph(%0: f32[50], %1: f32[50]) {
      %2: c64[50] = aten::complex(%0, %1)
      %3: f32[50] = aten::abs(%2)
      return %3 })"},
    {"rows_of_real_parts", {1, 0}, "u", R"(graph(%0: f32[5,7,2]) {
      %1: i64[5,7,1] = aten::view.dtype(%0) {dtype=i64}
      %2: i64[7,5,1] = aten::permute(%1) {dims=[1,0,2]}
      %3: f32[7,5,2] = aten::view.dtype(%2) {dtype=f32}
      %4: f32[7,5,1] = aten::slice.Tensor(%3) {dim=2,start=0,end=1,step=1}
      %5: f32[7,5] = aten::reshape(%4) {shape=[7,5]}
      %6: f32[7,5] = aten::neg(%5)
      %7: f32[7,1] = aten::amax(%6) {dim=[1],keepdim=true}
      %8: f32[7,5] = aten::sub.Tensor(%6, %7) {alpha=1}
      return %8 })"},
    {"attention", kLong, "u", R"(graph(%0: f32[2,5,8], %1: f32[2,5,8], %2: f32[2,5,8], %3: f64 scalar) {
      %4: f32[2,8,5] = aten::permute(%1) {dims=[0,2,1]}
      %5: f32[2,5,5] = aten::bmm(%0, %4)
      %6: f32[2,5,5] = aten::mul.Tensor(%5, %3)
      %7: f32[2,5,5] = aten::tril(%6) {diagonal=0}
      %8: f32[2,5,5] = aten::_softmax(%7) {dim=2,half_to_float=false}
      %9: f32[2,5,8] = aten::bmm(%8, %2)
      return %9 })"},
    {"layer_norm_and_softmax", kLong, "u", R"(graph(%0: f32[4,16], %1: f32[16], %2: f32[16]) {
      %3: f32[4,16], _, _ = aten::native_layer_norm(%0, %1, %2) {normalized_shape=[16],eps=1e-5}
      %4: f32[4,16] = aten::gelu(%3) {approximate="none"}
      %5: f32[4,16] = aten::_softmax(%4) {dim=1,half_to_float=false}
      return %5 })"},
    {"adam_step", kLong, "p", R"(graph(%0: f32[10], %1: f32[10], %2: f32[10], %3: f32[10], %4: f64 scalar) {
      %5: f32[10] = aten::lerp.Scalar(%1, %3) {weight=0.1}
      %6: f32[10] = aten::mul.Tensor(%3, %3)
      %7: f32[10] = aten::lerp.Scalar(%2, %6) {weight=0.001}
      %8: f32[10] = aten::sqrt(%7)
      %9: f32[10] = aten::div.Tensor(%5, %8)
      %10: f32[10] = aten::mul.Tensor(%9, %4)
      %11: f32[10] = aten::sub.Tensor(%0, %10) {alpha=1}
      return %11, %5, %7 })"},
    {"embedding_and_its_gradient", kLong, "fcu", R"(graph(%0: f32[8,4], %1: i64[6], %2: f32[6,4]) {
      %3: f32[6,4] = aten::index_select(%0, %1) {dim=0}
      %4: f32[6,4] = aten::mul.Tensor(%3, %2)
      %5: i64[6,1] = aten::reshape(%1) {shape=[6,1]}
      %6: i64[6,4] = aten::expand(%5) {size=[6,4],implicit=false}
      %7: f32[8,4] = aten::full() {size=[8,4],fill_value=0.0,dtype=f32}
      %8: f32[8,4] = aten::scatter_add(%7, %6, %4) {dim=0}
      return %3, %8 })"},
};

}  // namespace

std::span<const ProgramCase> derived_cases() { return kDerived; }
std::span<const ProgramCase> program_cases() { return kPrograms; }

}  // namespace ltc::conformance
