/* Generated from core/ops/op_table.inc by core/ops/generate.py: do not edit.
 *
 * The op set: ids and names of ops. docs/opset.md defines each op. An id is never changed and never given to another op. */
/* clang-format off */
#ifndef LTC_OPSET_H
#define LTC_OPSET_H

/* X(id, tier, IDENTIFIER, name, operands) for each op. Tiers: MINIMAL, a plugin that computes claims it, or says in its conformance
 * report that it does not; DERIVED, decomposed where a plugin does not claim it; WHOLE, run by the host where a plugin does not
 * claim it; HOST, never in a graph. Operands: the arguments in the schema's order, for ltc_node_matches of ltc/entry.h. */
#define LTC_OPSET(X) \
  X(1, MINIMAL, ATEN_NEG, "aten::neg", "T:self") \
  X(2, MINIMAL, ATEN_ABS, "aten::abs", "T:self") \
  X(3, MINIMAL, ATEN_SIGN, "aten::sign", "T:self") \
  X(4, MINIMAL, ATEN_FLOOR, "aten::floor", "T:self") \
  X(5, MINIMAL, ATEN_CEIL, "aten::ceil", "T:self") \
  X(6, MINIMAL, ATEN_TRUNC, "aten::trunc", "T:self") \
  X(7, MINIMAL, ATEN_ROUND, "aten::round", "T:self") \
  X(8, MINIMAL, ATEN_EXP, "aten::exp", "T:self") \
  X(9, MINIMAL, ATEN_EXPM1, "aten::expm1", "T:self") \
  X(10, MINIMAL, ATEN_LOG, "aten::log", "T:self") \
  X(11, MINIMAL, ATEN_LOG1P, "aten::log1p", "T:self") \
  X(12, MINIMAL, ATEN_SQRT, "aten::sqrt", "T:self") \
  X(13, MINIMAL, ATEN_SIN, "aten::sin", "T:self") \
  X(14, MINIMAL, ATEN_COS, "aten::cos", "T:self") \
  X(15, MINIMAL, ATEN_TAN, "aten::tan", "T:self") \
  X(16, MINIMAL, ATEN_TANH, "aten::tanh", "T:self") \
  X(17, MINIMAL, ATEN_ATAN, "aten::atan", "T:self") \
  X(18, MINIMAL, ATEN_ERF, "aten::erf", "T:self") \
  X(19, MINIMAL, ATEN_LGAMMA, "aten::lgamma", "T:self") \
  X(20, MINIMAL, ATEN_BITWISE_NOT, "aten::bitwise_not", "T:self") \
  X(21, MINIMAL, ATEN_ADD_TENSOR, "aten::add.Tensor", "T:self T:other S:alpha") \
  X(22, MINIMAL, ATEN_MUL_TENSOR, "aten::mul.Tensor", "T:self T:other") \
  X(23, MINIMAL, ATEN_DIV_TENSOR, "aten::div.Tensor", "T:self T:other") \
  X(24, MINIMAL, ATEN_REMAINDER_TENSOR, "aten::remainder.Tensor", "T:self T:other") \
  X(25, MINIMAL, ATEN_FMOD_TENSOR, "aten::fmod.Tensor", "T:self T:other") \
  X(26, MINIMAL, ATEN_POW_TENSOR_TENSOR, "aten::pow.Tensor_Tensor", "T:self T:exponent") \
  X(27, MINIMAL, ATEN_MAXIMUM, "aten::maximum", "T:self T:other") \
  X(28, MINIMAL, ATEN_MINIMUM, "aten::minimum", "T:self T:other") \
  X(29, MINIMAL, ATEN_ATAN2, "aten::atan2", "T:self T:other") \
  X(30, MINIMAL, ATEN_BITWISE_AND_TENSOR, "aten::bitwise_and.Tensor", "T:self T:other") \
  X(31, MINIMAL, ATEN_BITWISE_OR_TENSOR, "aten::bitwise_or.Tensor", "T:self T:other") \
  X(32, MINIMAL, ATEN_BITWISE_XOR_TENSOR, "aten::bitwise_xor.Tensor", "T:self T:other") \
  X(33, MINIMAL, ATEN_BITWISE_LEFT_SHIFT_TENSOR, "aten::bitwise_left_shift.Tensor", "T:self T:other") \
  X(34, MINIMAL, ATEN_BITWISE_RIGHT_SHIFT_TENSOR, "aten::bitwise_right_shift.Tensor", "T:self T:other") \
  X(35, MINIMAL, ATEN_EQ_TENSOR, "aten::eq.Tensor", "T:self T:other") \
  X(36, MINIMAL, ATEN_LT_TENSOR, "aten::lt.Tensor", "T:self T:other") \
  X(37, MINIMAL, ATEN_LE_TENSOR, "aten::le.Tensor", "T:self T:other") \
  X(38, MINIMAL, ATEN_WHERE_SELF, "aten::where.self", "T:condition T:self T:other") \
  X(39, MINIMAL, ATEN__TO_COPY, "aten::_to_copy", "T:self D?:dtype") \
  X(40, MINIMAL, ATEN_VIEW_DTYPE, "aten::view.dtype", "T:self D:dtype") \
  X(41, MINIMAL, ATEN_RESHAPE, "aten::reshape", "T:self I*:shape") \
  X(42, MINIMAL, ATEN_PERMUTE, "aten::permute", "T:self I*:dims") \
  X(43, MINIMAL, ATEN_EXPAND, "aten::expand", "T:self I*:size B:implicit") \
  X(44, MINIMAL, ATEN_SLICE_TENSOR, "aten::slice.Tensor", "T:self I:dim I?:start I?:end I:step") \
  X(45, MINIMAL, ATEN_CONSTANT_PAD_ND, "aten::constant_pad_nd", "T:self I*:pad S:value") \
  X(46, MINIMAL, ATEN_CAT, "aten::cat", "T*:tensors I:dim") \
  X(47, MINIMAL, ATEN_FLIP, "aten::flip", "T:self I*:dims") \
  X(48, MINIMAL, ATEN_ARANGE_START_STEP, "aten::arange.start_step", "S:start S:end S:step D?:dtype") \
  X(49, MINIMAL, ATEN_FULL, "aten::full", "I*:size S:fill_value D?:dtype") \
  X(50, MINIMAL, ATEN_AS_STRIDED, "aten::as_strided", "T:self I*:size I*:stride I?:storage_offset") \
  X(51, MINIMAL, ATEN_AS_STRIDED_SCATTER, "aten::as_strided_scatter", "T:self T:src I*:size I*:stride I?:storage_offset") \
  X(52, MINIMAL, ATEN_SUM_DIM_INTLIST, "aten::sum.dim_IntList", "T:self I*?:dim B:keepdim D?:dtype") \
  X(53, MINIMAL, ATEN_PROD_DIM_INT, "aten::prod.dim_int", "T:self I:dim B:keepdim D?:dtype") \
  X(54, MINIMAL, ATEN_AMAX, "aten::amax", "T:self I*:dim B:keepdim") \
  X(55, MINIMAL, ATEN_ARGMAX, "aten::argmax", "T:self I?:dim B:keepdim") \
  X(56, MINIMAL, ATEN_CUMSUM, "aten::cumsum", "T:self I:dim D?:dtype") \
  X(57, MINIMAL, ATEN_GATHER, "aten::gather", "T:self I:dim T:index B:sparse_grad") \
  X(58, MINIMAL, ATEN_SCATTER_SRC, "aten::scatter.src", "T:self I:dim T:index T:src") \
  X(59, MINIMAL, ATEN_SCATTER_ADD, "aten::scatter_add", "T:self I:dim T:index T:src") \
  X(60, MINIMAL, ATEN_SORT_STABLE, "aten::sort.stable", "T:self B?:stable I:dim B:descending") \
  X(61, MINIMAL, ATEN_BMM, "aten::bmm", "T:self T:mat2") \
  X(62, MINIMAL, ATEN_CONVOLUTION, "aten::convolution", "T:input T:weight T?:bias I*:stride I*:padding I*:dilation B:transposed I*:output_padding I:groups") \
  X(63, DERIVED, ATEN_RELU, "aten::relu", "T:self") \
  X(64, DERIVED, ATEN_THRESHOLD_BACKWARD, "aten::threshold_backward", "T:grad_output T:self S:threshold") \
  X(65, DERIVED, ATEN_SIGMOID, "aten::sigmoid", "T:self") \
  X(66, DERIVED, ATEN_SILU, "aten::silu", "T:self") \
  X(67, DERIVED, ATEN_GELU, "aten::gelu", "T:self Z:approximate") \
  X(68, DERIVED, ATEN_GELU_BACKWARD, "aten::gelu_backward", "T:grad_output T:self Z:approximate") \
  X(69, DERIVED, ATEN_SUB_TENSOR, "aten::sub.Tensor", "T:self T:other S:alpha") \
  X(70, DERIVED, ATEN_RECIPROCAL, "aten::reciprocal", "T:self") \
  X(71, DERIVED, ATEN_RSQRT, "aten::rsqrt", "T:self") \
  X(72, DERIVED, ATEN_ADDCMUL, "aten::addcmul", "T:self T:tensor1 T:tensor2 S:value") \
  X(73, DERIVED, ATEN_ADDCDIV, "aten::addcdiv", "T:self T:tensor1 T:tensor2 S:value") \
  X(74, DERIVED, ATEN_LERP_SCALAR, "aten::lerp.Scalar", "T:self T:end S:weight") \
  X(75, DERIVED, ATEN_LERP_TENSOR, "aten::lerp.Tensor", "T:self T:end T:weight") \
  X(76, DERIVED, ATEN_CLAMP, "aten::clamp", "T:self S?:min S?:max") \
  X(77, DERIVED, ATEN_POW_TENSOR_SCALAR, "aten::pow.Tensor_Scalar", "T:self S:exponent") \
  X(78, DERIVED, ATEN_MASKED_FILL_SCALAR, "aten::masked_fill.Scalar", "T:self T:mask S:value") \
  X(79, DERIVED, ATEN_MM, "aten::mm", "T:self T:mat2") \
  X(80, DERIVED, ATEN_ADDMM, "aten::addmm", "T:self T:mat1 T:mat2 S:beta S:alpha") \
  X(81, DERIVED, ATEN_BADDBMM, "aten::baddbmm", "T:self T:batch1 T:batch2 S:beta S:alpha") \
  X(82, DERIVED, ATEN__SOFTMAX, "aten::_softmax", "T:self I:dim B:half_to_float") \
  X(83, DERIVED, ATEN__SOFTMAX_BACKWARD_DATA, "aten::_softmax_backward_data", "T:grad_output T:output I:dim D:input_dtype") \
  X(84, DERIVED, ATEN__LOG_SOFTMAX, "aten::_log_softmax", "T:self I:dim B:half_to_float") \
  X(85, DERIVED, ATEN__LOG_SOFTMAX_BACKWARD_DATA, "aten::_log_softmax_backward_data", "T:grad_output T:output I:dim D:input_dtype") \
  X(86, DERIVED, ATEN_NLL_LOSS_FORWARD, "aten::nll_loss_forward", "T:self T:target T?:weight I:reduction I:ignore_index") \
  X(87, DERIVED, ATEN_NLL_LOSS_BACKWARD, "aten::nll_loss_backward", "T:grad_output T:self T:target T?:weight I:reduction I:ignore_index T:total_weight") \
  X(88, DERIVED, ATEN_MSE_LOSS, "aten::mse_loss", "T:self T:target I:reduction") \
  X(89, DERIVED, ATEN_MSE_LOSS_BACKWARD, "aten::mse_loss_backward", "T:grad_output T:self T:target I:reduction") \
  X(90, DERIVED, ATEN_MEAN_DIM, "aten::mean.dim", "T:self I*?:dim B:keepdim D?:dtype") \
  X(91, DERIVED, ATEN_VAR_CORRECTION, "aten::var.correction", "T:self I*?:dim S?:correction B:keepdim") \
  X(92, DERIVED, ATEN_MAX_DIM, "aten::max.dim", "T:self I:dim B:keepdim") \
  X(93, DERIVED, ATEN_MIN_DIM, "aten::min.dim", "T:self I:dim B:keepdim") \
  X(94, DERIVED, ATEN_ANY, "aten::any", "T:self") \
  X(95, DERIVED, ATEN_ALL, "aten::all", "T:self") \
  X(96, DERIVED, ATEN_NATIVE_LAYER_NORM, "aten::native_layer_norm", "T:input I*:normalized_shape T?:weight T?:bias S:eps") \
  X(97, DERIVED, ATEN_NATIVE_LAYER_NORM_BACKWARD, "aten::native_layer_norm_backward", "T:grad_out T:input I*:normalized_shape T:mean T:rstd T?:weight T?:bias I*:output_mask") \
  X(98, DERIVED, ATEN_NATIVE_GROUP_NORM, "aten::native_group_norm", "T:input T?:weight T?:bias I:N I:C I:HxW I:group S:eps") \
  X(99, DERIVED, ATEN_NATIVE_GROUP_NORM_BACKWARD, "aten::native_group_norm_backward", "T:grad_out T:input T:mean T:rstd T?:weight I:N I:C I:HxW I:group I*:output_mask") \
  X(100, DERIVED, ATEN__NATIVE_BATCH_NORM_LEGIT_FUNCTIONAL, "aten::_native_batch_norm_legit_functional", "T:input T?:weight T?:bias T:running_mean T:running_var B:training S:momentum S:eps") \
  X(101, DERIVED, ATEN_NATIVE_BATCH_NORM_BACKWARD, "aten::native_batch_norm_backward", "T:grad_out T:input T?:weight T?:running_mean T?:running_var T?:save_mean T?:save_invstd B:train S:eps I*:output_mask") \
  X(102, DERIVED, ATEN_NATIVE_DROPOUT_BACKWARD, "aten::native_dropout_backward", "T:grad_output T:mask S:scale") \
  X(103, DERIVED, ATEN_MAX_POOL2D_WITH_INDICES, "aten::max_pool2d_with_indices", "T:self I*:kernel_size I*:stride I*:padding I*:dilation B:ceil_mode") \
  X(104, DERIVED, ATEN_MAX_POOL2D_WITH_INDICES_BACKWARD, "aten::max_pool2d_with_indices_backward", "T:grad_output T:self I*:kernel_size I*:stride I*:padding I*:dilation B:ceil_mode T:indices") \
  X(105, DERIVED, ATEN_AVG_POOL2D, "aten::avg_pool2d", "T:self I*:kernel_size I*:stride I*:padding B:ceil_mode B:count_include_pad I?:divisor_override") \
  X(106, DERIVED, ATEN_AVG_POOL2D_BACKWARD, "aten::avg_pool2d_backward", "T:grad_output T:self I*:kernel_size I*:stride I*:padding B:ceil_mode B:count_include_pad I?:divisor_override") \
  X(107, DERIVED, ATEN__ADAPTIVE_AVG_POOL2D, "aten::_adaptive_avg_pool2d", "T:self I*:output_size") \
  X(108, DERIVED, ATEN__ADAPTIVE_AVG_POOL2D_BACKWARD, "aten::_adaptive_avg_pool2d_backward", "T:grad_output T:self") \
  X(109, DERIVED, ATEN_CONVOLUTION_BACKWARD, "aten::convolution_backward", "T:grad_output T:input T:weight I*?:bias_sizes I*:stride I*:padding I*:dilation B:transposed I*:output_padding I:groups I*:output_mask") \
  X(110, DERIVED, ATEN_EMBEDDING, "aten::embedding", "T:weight T:indices I:padding_idx B:scale_grad_by_freq B:sparse") \
  X(111, DERIVED, ATEN_EMBEDDING_DENSE_BACKWARD, "aten::embedding_dense_backward", "T:grad_output T:indices I:num_weights I:padding_idx B:scale_grad_by_freq") \
  X(112, DERIVED, ATEN_INDEX_TENSOR, "aten::index.Tensor", "T:self T*?:indices") \
  X(113, DERIVED, ATEN_INDEX_PUT, "aten::index_put", "T:self T*?:indices T:values B:accumulate") \
  X(114, DERIVED, ATEN_INDEX_SELECT, "aten::index_select", "T:self I:dim T:index") \
  X(115, DERIVED, ATEN_STACK, "aten::stack", "T*:tensors I:dim") \
  X(116, DERIVED, ATEN_REPEAT, "aten::repeat", "T:self I*:repeats") \
  X(117, HOST, ATEN_ROLL, "aten::roll", "T:self I*:shifts I*:dims") \
  X(118, DERIVED, ATEN_TRIL, "aten::tril", "T:self I:diagonal") \
  X(119, DERIVED, ATEN_TRIU, "aten::triu", "T:self I:diagonal") \
  X(120, DERIVED, ATEN_LOGSUMEXP, "aten::logsumexp", "T:self I*:dim B:keepdim") \
  X(121, DERIVED, ATEN__SAFE_SOFTMAX, "aten::_safe_softmax", "T:self I:dim D?:dtype") \
  X(122, DERIVED, ATEN_LINSPACE, "aten::linspace", "S:start S:end I:steps D?:dtype") \
  X(123, DERIVED, ATEN_ISINF, "aten::isinf", "T:self") \
  X(124, DERIVED, ATEN_NAN_TO_NUM, "aten::nan_to_num", "T:self S?:nan S?:posinf S?:neginf") \
  X(125, DERIVED, ATEN_EYE, "aten::eye", "I:n D?:dtype") \
  X(126, DERIVED, ATEN_EYE_M, "aten::eye.m", "I:n I:m D?:dtype") \
  X(127, HOST, ATEN_NONZERO, "aten::nonzero", "T:self") \
  X(128, HOST, ATEN_MASKED_SELECT, "aten::masked_select", "T:self T:mask") \
  X(129, HOST, ATEN_UNIQUE_DIM, "aten::unique_dim", "T:self I:dim B:sorted B:return_inverse B:return_counts") \
  X(130, HOST, ATEN__UNIQUE2, "aten::_unique2", "T:self B:sorted B:return_inverse B:return_counts") \
  X(131, HOST, ATEN_REPEAT_INTERLEAVE_TENSOR, "aten::repeat_interleave.Tensor", "T:repeats I?:output_size") \
  X(132, HOST, ATEN_EQUAL, "aten::equal", "T:self T:other") \
  X(133, HOST, ATEN_BINCOUNT, "aten::bincount", "T:self T?:weights I:minlength") \
  X(134, HOST, ATEN__CTC_LOSS_TENSOR, "aten::_ctc_loss.Tensor", "T:log_probs T:targets T:input_lengths T:target_lengths I:blank B:zero_infinity") \
  X(135, MINIMAL, LTC_PHILOX, "ltc::philox", "S:seed S:offset I*:size D:dtype") \
  X(136, DERIVED, ATEN__SCALED_DOT_PRODUCT_FLASH_ATTENTION_FOR_CPU, "aten::_scaled_dot_product_flash_attention_for_cpu", "T:query T:key T:value S:dropout_p B:is_causal T?:attn_mask S?:scale") \
  X(137, DERIVED, ATEN__SCALED_DOT_PRODUCT_FLASH_ATTENTION_FOR_CPU_BACKWARD, "aten::_scaled_dot_product_flash_attention_for_cpu_backward", "T:grad_out T:query T:key T:value T:out T:logsumexp S:dropout_p B:is_causal T?:attn_mask S?:scale") \
  X(138, DERIVED, LTC_LSTM_LAYER, "ltc::lstm_layer", "T:input T:hx T:cx T:weight_ih T:weight_hh T?:bias_ih T?:bias_hh B:reverse B:train") \
  X(139, DERIVED, LTC_LSTM_LAYER_BACKWARD, "ltc::lstm_layer_backward", "T?:grad_output T?:grad_hy T?:grad_cy T:input T:hx T:cx T:weight_ih T:weight_hh T?:bias_ih T?:bias_hh T:output T:hy T:cy T:reserve B:reverse") \
  X(140, DERIVED, LTC_GRU_LAYER, "ltc::gru_layer", "T:input T:hx T:weight_ih T:weight_hh T?:bias_ih T?:bias_hh B:reverse B:train") \
  X(141, DERIVED, LTC_GRU_LAYER_BACKWARD, "ltc::gru_layer_backward", "T?:grad_output T?:grad_hy T:input T:hx T:weight_ih T:weight_hh T?:bias_ih T?:bias_hh T:output T:hy T:reserve B:reverse") \
  X(142, DERIVED, ATEN_LOG2, "aten::log2", "T:self") \
  X(143, DERIVED, ATEN_LOG10, "aten::log10", "T:self") \
  X(144, DERIVED, ATEN_EXP2, "aten::exp2", "T:self") \
  X(145, DERIVED, ATEN_ASIN, "aten::asin", "T:self") \
  X(146, DERIVED, ATEN_ACOS, "aten::acos", "T:self") \
  X(147, DERIVED, ATEN_SINH, "aten::sinh", "T:self") \
  X(148, DERIVED, ATEN_COSH, "aten::cosh", "T:self") \
  X(149, DERIVED, ATEN_ASINH, "aten::asinh", "T:self") \
  X(150, DERIVED, ATEN_ACOSH, "aten::acosh", "T:self") \
  X(151, DERIVED, ATEN_ATANH, "aten::atanh", "T:self") \
  X(152, DERIVED, ATEN_ERFC, "aten::erfc", "T:self") \
  X(153, DERIVED, ATEN_SINC, "aten::sinc", "T:self") \
  X(154, DERIVED, ATEN_FRAC, "aten::frac", "T:self") \
  X(155, DERIVED, ATEN_SGN, "aten::sgn", "T:self") \
  X(156, DERIVED, ATEN_POSITIVE, "aten::positive", "T:self") \
  X(157, DERIVED, ATEN_SQUARE, "aten::square", "T:self") \
  X(158, DERIVED, ATEN_ISFINITE, "aten::isfinite", "T:self") \
  X(159, DERIVED, ATEN_ISNAN, "aten::isnan", "T:self") \
  X(160, DERIVED, ATEN_SIGNBIT, "aten::signbit", "T:self") \
  X(161, DERIVED, ATEN_LOGICAL_NOT, "aten::logical_not", "T:self") \
  X(162, DERIVED, ATEN_LOG_SIGMOID_FORWARD, "aten::log_sigmoid_forward", "T:self") \
  X(163, DERIVED, ATEN_LOGIT, "aten::logit", "T:self S?:eps") \
  X(164, DERIVED, ATEN_LOGIT_BACKWARD, "aten::logit_backward", "T:grad_output T:self S?:eps") \
  X(165, DERIVED, ATEN_SUB_SCALAR, "aten::sub.Scalar", "T:self S:other S:alpha") \
  X(166, DERIVED, ATEN_RSUB_TENSOR, "aten::rsub.Tensor", "T:self T:other S:alpha") \
  X(167, DERIVED, ATEN_RSUB_SCALAR, "aten::rsub.Scalar", "T:self S:other S:alpha") \
  X(168, DERIVED, ATEN_ADD_SCALAR, "aten::add.Scalar", "T:self S:other S:alpha") \
  X(169, DERIVED, ATEN_MUL_SCALAR, "aten::mul.Scalar", "T:self S:other") \
  X(170, DERIVED, ATEN_DIV_SCALAR, "aten::div.Scalar", "T:self S:other") \
  X(171, DERIVED, ATEN_DIV_TENSOR_MODE, "aten::div.Tensor_mode", "T:self T:other Z?:rounding_mode") \
  X(172, DERIVED, ATEN_DIV_SCALAR_MODE, "aten::div.Scalar_mode", "T:self S:other Z?:rounding_mode") \
  X(173, DERIVED, ATEN_FLOOR_DIVIDE, "aten::floor_divide", "T:self T:other") \
  X(174, DERIVED, ATEN_FLOOR_DIVIDE_SCALAR, "aten::floor_divide.Scalar", "T:self S:other") \
  X(175, DERIVED, ATEN_REMAINDER_SCALAR, "aten::remainder.Scalar", "T:self S:other") \
  X(176, DERIVED, ATEN_REMAINDER_SCALAR_TENSOR, "aten::remainder.Scalar_Tensor", "S:self T:other") \
  X(177, DERIVED, ATEN_FMOD_SCALAR, "aten::fmod.Scalar", "T:self S:other") \
  X(178, DERIVED, ATEN_POW_SCALAR, "aten::pow.Scalar", "S:self T:exponent") \
  X(179, DERIVED, ATEN_FMAX, "aten::fmax", "T:self T:other") \
  X(180, DERIVED, ATEN_FMIN, "aten::fmin", "T:self T:other") \
  X(181, DERIVED, ATEN_HYPOT, "aten::hypot", "T:self T:other") \
  X(182, DERIVED, ATEN_COPYSIGN_TENSOR, "aten::copysign.Tensor", "T:self T:other") \
  X(183, DERIVED, ATEN_HEAVISIDE, "aten::heaviside", "T:self T:values") \
  X(184, DERIVED, ATEN_LOGADDEXP, "aten::logaddexp", "T:self T:other") \
  X(185, DERIVED, ATEN_LOGADDEXP2, "aten::logaddexp2", "T:self T:other") \
  X(186, DERIVED, ATEN_XLOGY_TENSOR, "aten::xlogy.Tensor", "T:self T:other") \
  X(187, DERIVED, ATEN_SPECIAL_XLOG1PY, "aten::special_xlog1py", "T:self T:other") \
  X(188, DERIVED, ATEN_BITWISE_AND_SCALAR, "aten::bitwise_and.Scalar", "T:self S:other") \
  X(189, DERIVED, ATEN_BITWISE_OR_SCALAR, "aten::bitwise_or.Scalar", "T:self S:other") \
  X(190, DERIVED, ATEN_BITWISE_XOR_SCALAR, "aten::bitwise_xor.Scalar", "T:self S:other") \
  X(191, DERIVED, ATEN_LOGICAL_AND, "aten::logical_and", "T:self T:other") \
  X(192, DERIVED, ATEN_LOGICAL_OR, "aten::logical_or", "T:self T:other") \
  X(193, DERIVED, ATEN_LOGICAL_XOR, "aten::logical_xor", "T:self T:other") \
  X(194, DERIVED, ATEN_NE_TENSOR, "aten::ne.Tensor", "T:self T:other") \
  X(195, DERIVED, ATEN_GT_TENSOR, "aten::gt.Tensor", "T:self T:other") \
  X(196, DERIVED, ATEN_GE_TENSOR, "aten::ge.Tensor", "T:self T:other") \
  X(197, DERIVED, ATEN_EQ_SCALAR, "aten::eq.Scalar", "T:self S:other") \
  X(198, DERIVED, ATEN_NE_SCALAR, "aten::ne.Scalar", "T:self S:other") \
  X(199, DERIVED, ATEN_LT_SCALAR, "aten::lt.Scalar", "T:self S:other") \
  X(200, DERIVED, ATEN_LE_SCALAR, "aten::le.Scalar", "T:self S:other") \
  X(201, DERIVED, ATEN_GT_SCALAR, "aten::gt.Scalar", "T:self S:other") \
  X(202, DERIVED, ATEN_GE_SCALAR, "aten::ge.Scalar", "T:self S:other") \
  X(203, DERIVED, ATEN_CLAMP_TENSOR, "aten::clamp.Tensor", "T:self T?:min T?:max") \
  X(204, DERIVED, ATEN_CLAMP_MIN, "aten::clamp_min", "T:self S:min") \
  X(205, DERIVED, ATEN_CLAMP_MAX, "aten::clamp_max", "T:self S:max") \
  X(206, DERIVED, ATEN_CLAMP_MIN_TENSOR, "aten::clamp_min.Tensor", "T:self T:min") \
  X(207, DERIVED, ATEN_CLAMP_MAX_TENSOR, "aten::clamp_max.Tensor", "T:self T:max") \
  X(208, DERIVED, ATEN_MASKED_FILL_TENSOR, "aten::masked_fill.Tensor", "T:self T:mask T:value") \
  X(209, DERIVED, ATEN_THRESHOLD, "aten::threshold", "T:self S:threshold S:value") \
  X(210, DERIVED, ATEN_SILU_BACKWARD, "aten::silu_backward", "T:grad_output T:self") \
  X(211, DERIVED, ATEN_ELU, "aten::elu", "T:self S:alpha S:scale S:input_scale") \
  X(212, DERIVED, ATEN_ELU_BACKWARD, "aten::elu_backward", "T:grad_output S:alpha S:scale S:input_scale B:is_result T:self_or_result") \
  X(213, DERIVED, ATEN_LEAKY_RELU, "aten::leaky_relu", "T:self S:negative_slope") \
  X(214, DERIVED, ATEN_LEAKY_RELU_BACKWARD, "aten::leaky_relu_backward", "T:grad_output T:self S:negative_slope B:self_is_result") \
  X(215, DERIVED, ATEN__PRELU_KERNEL, "aten::_prelu_kernel", "T:self T:weight") \
  X(216, DERIVED, ATEN__PRELU_KERNEL_BACKWARD, "aten::_prelu_kernel_backward", "T:grad_output T:self T:weight") \
  X(217, DERIVED, ATEN_SOFTPLUS, "aten::softplus", "T:self S:beta S:threshold") \
  X(218, DERIVED, ATEN_SOFTPLUS_BACKWARD, "aten::softplus_backward", "T:grad_output T:self S:beta S:threshold") \
  X(219, DERIVED, ATEN_HARDTANH, "aten::hardtanh", "T:self S:min_val S:max_val") \
  X(220, DERIVED, ATEN_HARDTANH_BACKWARD, "aten::hardtanh_backward", "T:grad_output T:self S:min_val S:max_val") \
  X(221, DERIVED, ATEN_HARDSIGMOID, "aten::hardsigmoid", "T:self") \
  X(222, DERIVED, ATEN_HARDSIGMOID_BACKWARD, "aten::hardsigmoid_backward", "T:grad_output T:self") \
  X(223, DERIVED, ATEN_HARDSWISH, "aten::hardswish", "T:self") \
  X(224, DERIVED, ATEN_HARDSWISH_BACKWARD, "aten::hardswish_backward", "T:grad_output T:self") \
  X(225, DERIVED, ATEN_HARDSHRINK, "aten::hardshrink", "T:self S:lambd") \
  X(226, DERIVED, ATEN_HARDSHRINK_BACKWARD, "aten::hardshrink_backward", "T:grad_out T:self S:lambd") \
  X(227, DERIVED, ATEN_SOFTSHRINK, "aten::softshrink", "T:self S:lambd") \
  X(228, DERIVED, ATEN_SOFTSHRINK_BACKWARD, "aten::softshrink_backward", "T:grad_output T:self S:lambd") \
  X(229, DERIVED, ATEN_MISH, "aten::mish", "T:self") \
  X(230, DERIVED, ATEN_MISH_BACKWARD, "aten::mish_backward", "T:grad_output T:self") \
  X(231, DERIVED, ATEN_GLU, "aten::glu", "T:self I:dim") \
  X(232, DERIVED, ATEN_GLU_BACKWARD, "aten::glu_backward", "T:grad_output T:self I:dim") \
  X(233, DERIVED, ATEN_SIGMOID_BACKWARD, "aten::sigmoid_backward", "T:grad_output T:output") \
  X(234, DERIVED, ATEN_TANH_BACKWARD, "aten::tanh_backward", "T:grad_output T:output") \
  X(235, DERIVED, ATEN_LOG_SIGMOID_BACKWARD, "aten::log_sigmoid_backward", "T:grad_output T:self T:buffer") \
  X(236, DERIVED, ATEN_SUM, "aten::sum", "T:self D?:dtype") \
  X(237, DERIVED, ATEN_MEAN, "aten::mean", "T:self D?:dtype") \
  X(238, DERIVED, ATEN_PROD, "aten::prod", "T:self D?:dtype") \
  X(239, DERIVED, ATEN_AMIN, "aten::amin", "T:self I*:dim B:keepdim") \
  X(240, DERIVED, ATEN_MAX, "aten::max", "T:self") \
  X(241, DERIVED, ATEN_MIN, "aten::min", "T:self") \
  X(242, DERIVED, ATEN_ARGMIN, "aten::argmin", "T:self I?:dim B:keepdim") \
  X(243, DERIVED, ATEN_AMINMAX, "aten::aminmax", "T:self I?:dim B:keepdim") \
  X(244, DERIVED, ATEN_ANY_DIM, "aten::any.dim", "T:self I:dim B:keepdim") \
  X(245, DERIVED, ATEN_ALL_DIM, "aten::all.dim", "T:self I:dim B:keepdim") \
  X(246, DERIVED, ATEN_ANY_DIMS, "aten::any.dims", "T:self I*?:dim B:keepdim") \
  X(247, DERIVED, ATEN_ALL_DIMS, "aten::all.dims", "T:self I*?:dim B:keepdim") \
  X(248, DERIVED, ATEN_STD_CORRECTION, "aten::std.correction", "T:self I*?:dim S?:correction B:keepdim") \
  X(249, DERIVED, ATEN_VAR_MEAN_CORRECTION, "aten::var_mean.correction", "T:self I*?:dim S?:correction B:keepdim") \
  X(250, DERIVED, ATEN_STD_MEAN_CORRECTION, "aten::std_mean.correction", "T:self I*?:dim S?:correction B:keepdim") \
  X(251, DERIVED, ATEN_NORM_SCALAROPT_DIM, "aten::norm.ScalarOpt_dim", "T:self S?:p I*:dim B:keepdim") \
  X(252, DERIVED, ATEN_LINALG_VECTOR_NORM, "aten::linalg_vector_norm", "T:self S:ord I*?:dim B:keepdim D?:dtype") \
  X(253, DERIVED, ATEN_COUNT_NONZERO_DIM_INTLIST, "aten::count_nonzero.dim_IntList", "T:self I*:dim") \
  X(254, DERIVED, ATEN_CUMPROD, "aten::cumprod", "T:self I:dim D?:dtype") \
  X(255, DERIVED, ATEN_CUMMAX, "aten::cummax", "T:self I:dim") \
  X(256, DERIVED, ATEN_CUMMIN, "aten::cummin", "T:self I:dim") \
  X(257, DERIVED, ATEN__LOGCUMSUMEXP, "aten::_logcumsumexp", "T:self I:dim") \
  X(258, DERIVED, ATEN_SORT, "aten::sort", "T:self I:dim B:descending") \
  X(259, DERIVED, ATEN_TOPK, "aten::topk", "T:self I:k I:dim B:largest B:sorted") \
  X(260, DERIVED, ATEN_KTHVALUE, "aten::kthvalue", "T:self I:k I:dim B:keepdim") \
  X(261, DERIVED, ATEN_CLONE, "aten::clone", "T:self") \
  X(262, DERIVED, ATEN_ZEROS, "aten::zeros", "I*:size D?:dtype") \
  X(263, DERIVED, ATEN_ONES, "aten::ones", "I*:size D?:dtype") \
  X(264, DERIVED, ATEN_SELECT_SCATTER, "aten::select_scatter", "T:self T:src I:dim I:index") \
  X(265, DERIVED, ATEN_SELECT_BACKWARD, "aten::select_backward", "T:grad_output I*:input_sizes I:dim I:index") \
  X(266, DERIVED, ATEN_SLICE_BACKWARD, "aten::slice_backward", "T:grad_output I*:input_sizes I:dim I:start I:end I:step") \
  X(267, DERIVED, ATEN_SCATTER_VALUE, "aten::scatter.value", "T:self I:dim T:index S:value") \
  X(268, DERIVED, ATEN_INDEX_FILL_INT_SCALAR, "aten::index_fill.int_Scalar", "T:self I:dim T:index S:value") \
  X(269, DERIVED, ATEN_INDEX_COPY, "aten::index_copy", "T:self I:dim T:index T:source") \
  X(270, DERIVED, ATEN_INDEX_ADD, "aten::index_add", "T:self I:dim T:index T:source S:alpha") \
  X(271, DERIVED, ATEN_MV, "aten::mv", "T:self T:vec") \
  X(272, DERIVED, ATEN_DOT, "aten::dot", "T:self T:tensor") \
  X(273, DERIVED, ATEN_VDOT, "aten::vdot", "T:self T:other") \
  X(274, DERIVED, ATEN_ADDMV, "aten::addmv", "T:self T:mat T:vec S:beta S:alpha") \
  X(275, DERIVED, ATEN_ADDR, "aten::addr", "T:self T:vec1 T:vec2 S:beta S:alpha") \
  X(276, DERIVED, ATEN_ADDBMM, "aten::addbmm", "T:self T:batch1 T:batch2 S:beta S:alpha") \
  X(277, DERIVED, ATEN_MAX_POOL3D_WITH_INDICES, "aten::max_pool3d_with_indices", "T:self I*:kernel_size I*:stride I*:padding I*:dilation B:ceil_mode") \
  X(278, DERIVED, ATEN_MAX_POOL3D_WITH_INDICES_BACKWARD, "aten::max_pool3d_with_indices_backward", "T:grad_output T:self I*:kernel_size I*:stride I*:padding I*:dilation B:ceil_mode T:indices") \
  X(279, DERIVED, ATEN_AVG_POOL3D, "aten::avg_pool3d", "T:self I*:kernel_size I*:stride I*:padding B:ceil_mode B:count_include_pad I?:divisor_override") \
  X(280, DERIVED, ATEN_AVG_POOL3D_BACKWARD, "aten::avg_pool3d_backward", "T:grad_output T:self I*:kernel_size I*:stride I*:padding B:ceil_mode B:count_include_pad I?:divisor_override") \
  X(281, DERIVED, ATEN__ADAPTIVE_AVG_POOL3D, "aten::_adaptive_avg_pool3d", "T:self I*:output_size") \
  X(282, DERIVED, ATEN__ADAPTIVE_AVG_POOL3D_BACKWARD, "aten::_adaptive_avg_pool3d_backward", "T:grad_output T:self") \
  X(283, DERIVED, ATEN_UPSAMPLE_NEAREST1D, "aten::upsample_nearest1d", "T:self I*:output_size S?:scales") \
  X(284, DERIVED, ATEN_UPSAMPLE_NEAREST2D, "aten::upsample_nearest2d", "T:self I*:output_size S?:scales_h S?:scales_w") \
  X(285, DERIVED, ATEN_UPSAMPLE_NEAREST3D, "aten::upsample_nearest3d", "T:self I*:output_size S?:scales_d S?:scales_h S?:scales_w") \
  X(286, DERIVED, ATEN_UPSAMPLE_NEAREST1D_BACKWARD, "aten::upsample_nearest1d_backward", "T:grad_output I*:output_size I*:input_size S?:scales") \
  X(287, DERIVED, ATEN_UPSAMPLE_NEAREST2D_BACKWARD, "aten::upsample_nearest2d_backward", "T:grad_output I*:output_size I*:input_size S?:scales_h S?:scales_w") \
  X(288, DERIVED, ATEN_UPSAMPLE_NEAREST3D_BACKWARD, "aten::upsample_nearest3d_backward", "T:grad_output I*:output_size I*:input_size S?:scales_d S?:scales_h S?:scales_w") \
  X(289, DERIVED, ATEN__UPSAMPLE_NEAREST_EXACT1D, "aten::_upsample_nearest_exact1d", "T:self I*:output_size S?:scales") \
  X(290, DERIVED, ATEN__UPSAMPLE_NEAREST_EXACT2D, "aten::_upsample_nearest_exact2d", "T:self I*:output_size S?:scales_h S?:scales_w") \
  X(291, DERIVED, ATEN__UPSAMPLE_NEAREST_EXACT3D, "aten::_upsample_nearest_exact3d", "T:self I*:output_size S?:scales_d S?:scales_h S?:scales_w") \
  X(292, DERIVED, ATEN__UPSAMPLE_NEAREST_EXACT1D_BACKWARD, "aten::_upsample_nearest_exact1d_backward", "T:grad_output I*:output_size I*:input_size S?:scales") \
  X(293, DERIVED, ATEN__UPSAMPLE_NEAREST_EXACT2D_BACKWARD, "aten::_upsample_nearest_exact2d_backward", "T:grad_output I*:output_size I*:input_size S?:scales_h S?:scales_w") \
  X(294, DERIVED, ATEN__UPSAMPLE_NEAREST_EXACT3D_BACKWARD, "aten::_upsample_nearest_exact3d_backward", "T:grad_output I*:output_size I*:input_size S?:scales_d S?:scales_h S?:scales_w") \
  X(295, DERIVED, ATEN_UPSAMPLE_LINEAR1D, "aten::upsample_linear1d", "T:self I*:output_size B:align_corners S?:scales") \
  X(296, DERIVED, ATEN_UPSAMPLE_BILINEAR2D, "aten::upsample_bilinear2d", "T:self I*:output_size B:align_corners S?:scales_h S?:scales_w") \
  X(297, DERIVED, ATEN_UPSAMPLE_TRILINEAR3D, "aten::upsample_trilinear3d", "T:self I*:output_size B:align_corners S?:scales_d S?:scales_h S?:scales_w") \
  X(298, DERIVED, ATEN_UPSAMPLE_LINEAR1D_BACKWARD, "aten::upsample_linear1d_backward", "T:grad_output I*:output_size I*:input_size B:align_corners S?:scales") \
  X(299, DERIVED, ATEN_UPSAMPLE_BILINEAR2D_BACKWARD, "aten::upsample_bilinear2d_backward", "T:grad_output I*:output_size I*:input_size B:align_corners S?:scales_h S?:scales_w") \
  X(300, DERIVED, ATEN_UPSAMPLE_TRILINEAR3D_BACKWARD, "aten::upsample_trilinear3d_backward", "T:grad_output I*:output_size I*:input_size B:align_corners S?:scales_d S?:scales_h S?:scales_w") \
  X(301, DERIVED, ATEN_SMOOTH_L1_LOSS, "aten::smooth_l1_loss", "T:self T:target I:reduction S:beta") \
  X(302, DERIVED, ATEN_SMOOTH_L1_LOSS_BACKWARD, "aten::smooth_l1_loss_backward", "T:grad_output T:self T:target I:reduction S:beta") \
  X(303, DERIVED, ATEN_HUBER_LOSS, "aten::huber_loss", "T:self T:target I:reduction S:delta") \
  X(304, DERIVED, ATEN_HUBER_LOSS_BACKWARD, "aten::huber_loss_backward", "T:grad_output T:self T:target I:reduction S:delta") \
  X(305, DERIVED, ATEN_SOFT_MARGIN_LOSS, "aten::soft_margin_loss", "T:self T:target I:reduction") \
  X(306, DERIVED, ATEN_SOFT_MARGIN_LOSS_BACKWARD, "aten::soft_margin_loss_backward", "T:grad_output T:self T:target I:reduction") \
  X(307, DERIVED, ATEN_BINARY_CROSS_ENTROPY, "aten::binary_cross_entropy", "T:self T:target T?:weight I:reduction") \
  X(308, DERIVED, ATEN_BINARY_CROSS_ENTROPY_BACKWARD, "aten::binary_cross_entropy_backward", "T:grad_output T:self T:target T?:weight I:reduction") \
  X(309, DERIVED, ATEN_NLL_LOSS2D_FORWARD, "aten::nll_loss2d_forward", "T:self T:target T?:weight I:reduction I:ignore_index") \
  X(310, DERIVED, ATEN_NLL_LOSS2D_BACKWARD, "aten::nll_loss2d_backward", "T:grad_output T:self T:target T?:weight I:reduction I:ignore_index T:total_weight") \
  X(311, DERIVED, ATEN_DIGAMMA, "aten::digamma", "T:self") \
  X(312, DERIVED, ATEN_ERFINV, "aten::erfinv", "T:self") \
  X(313, DERIVED, ATEN_POLYGAMMA, "aten::polygamma", "I:n T:self") \
  X(314, DERIVED, ATEN_I0, "aten::i0", "T:self") \
  X(315, DERIVED, ATEN_SPECIAL_I0E, "aten::special_i0e", "T:self") \
  X(316, DERIVED, ATEN_SPECIAL_I1, "aten::special_i1", "T:self") \
  X(317, DERIVED, ATEN_SPECIAL_I1E, "aten::special_i1e", "T:self") \
  X(318, DERIVED, ATEN_SPECIAL_ENTR, "aten::special_entr", "T:self") \
  X(319, DERIVED, ATEN_BUCKETIZE_TENSOR, "aten::bucketize.Tensor", "T:self T:boundaries B:out_int32 B:right") \
  X(320, DERIVED, ATEN_SEARCHSORTED_TENSOR, "aten::searchsorted.Tensor", "T:sorted_sequence T:self B:out_int32 B:right Z?:side T?:sorter") \
  X(321, DERIVED, ATEN_ISIN_TENSOR_TENSOR, "aten::isin.Tensor_Tensor", "T:elements T:test_elements B:assume_unique B:invert") \
  X(322, DERIVED, ATEN_TAKE, "aten::take", "T:self T:index") \
  X(323, DERIVED, ATEN_PUT, "aten::put", "T:self T:index T:source B:accumulate") \
  X(324, DERIVED, ATEN_SCATTER_REDUCE_TWO, "aten::scatter_reduce.two", "T:self I:dim T:index T:src Z:reduce B:include_self") \
  X(325, DERIVED, ATEN_ISPOSINF, "aten::isposinf", "T:self") \
  X(326, DERIVED, ATEN_ISNEGINF, "aten::isneginf", "T:self") \
  X(327, DERIVED, ATEN_ANGLE, "aten::angle", "T:self") \
  X(328, DERIVED, ATEN_ROUND_DECIMALS, "aten::round.decimals", "T:self I:decimals") \
  X(329, DERIVED, ATEN_FILL_SCALAR, "aten::fill.Scalar", "T:self S:value") \
  X(330, DERIVED, ATEN_FILL_TENSOR, "aten::fill.Tensor", "T:self T:value") \
  X(331, DERIVED, ATEN__NATIVE_BATCH_NORM_LEGIT_NO_STATS, "aten::_native_batch_norm_legit.no_stats", "T:input T?:weight T?:bias B:training S:momentum S:eps") \
  X(332, DERIVED, ATEN__FUSED_RMS_NORM, "aten::_fused_rms_norm", "T:input I*:normalized_shape T?:weight S?:eps") \
  X(333, DERIVED, ATEN__WEIGHT_NORM_INTERFACE, "aten::_weight_norm_interface", "T:v T:g I:dim") \
  X(334, DERIVED, ATEN__WEIGHT_NORM_INTERFACE_BACKWARD, "aten::_weight_norm_interface_backward", "T:grad_w T:saved_v T:saved_g T:saved_norms I:dim") \
  X(335, DERIVED, ATEN_UPSAMPLE_BICUBIC2D, "aten::upsample_bicubic2d", "T:self I*:output_size B:align_corners S?:scales_h S?:scales_w") \
  X(336, DERIVED, ATEN_UPSAMPLE_BICUBIC2D_BACKWARD, "aten::upsample_bicubic2d_backward", "T:grad_output I*:output_size I*:input_size B:align_corners S?:scales_h S?:scales_w") \
  X(337, DERIVED, ATEN_MAX_UNPOOL2D, "aten::max_unpool2d", "T:self T:indices I*:output_size") \
  X(338, DERIVED, ATEN_MAX_UNPOOL3D, "aten::max_unpool3d", "T:self T:indices I*:output_size I*:stride I*:padding") \
  X(339, DERIVED, ATEN_ADAPTIVE_MAX_POOL2D, "aten::adaptive_max_pool2d", "T:self I*:output_size") \
  X(340, DERIVED, ATEN_ADAPTIVE_MAX_POOL3D, "aten::adaptive_max_pool3d", "T:self I*:output_size") \
  X(341, DERIVED, ATEN_ADAPTIVE_MAX_POOL2D_BACKWARD, "aten::adaptive_max_pool2d_backward", "T:grad_output T:self T:indices") \
  X(342, DERIVED, ATEN_ADAPTIVE_MAX_POOL3D_BACKWARD, "aten::adaptive_max_pool3d_backward", "T:grad_output T:self T:indices") \
  X(343, DERIVED, ATEN_REFLECTION_PAD1D, "aten::reflection_pad1d", "T:self I*:padding") \
  X(344, DERIVED, ATEN_REFLECTION_PAD2D, "aten::reflection_pad2d", "T:self I*:padding") \
  X(345, DERIVED, ATEN_REFLECTION_PAD3D, "aten::reflection_pad3d", "T:self I*:padding") \
  X(346, DERIVED, ATEN_REPLICATION_PAD1D, "aten::replication_pad1d", "T:self I*:padding") \
  X(347, DERIVED, ATEN_REPLICATION_PAD2D, "aten::replication_pad2d", "T:self I*:padding") \
  X(348, DERIVED, ATEN_REPLICATION_PAD3D, "aten::replication_pad3d", "T:self I*:padding") \
  X(349, DERIVED, ATEN_REFLECTION_PAD1D_BACKWARD, "aten::reflection_pad1d_backward", "T:grad_output T:self I*:padding") \
  X(350, DERIVED, ATEN_REFLECTION_PAD2D_BACKWARD, "aten::reflection_pad2d_backward", "T:grad_output T:self I*:padding") \
  X(351, DERIVED, ATEN_REFLECTION_PAD3D_BACKWARD, "aten::reflection_pad3d_backward", "T:grad_output T:self I*:padding") \
  X(352, DERIVED, ATEN_REPLICATION_PAD1D_BACKWARD, "aten::replication_pad1d_backward", "T:grad_output T:self I*:padding") \
  X(353, DERIVED, ATEN_REPLICATION_PAD2D_BACKWARD, "aten::replication_pad2d_backward", "T:grad_output T:self I*:padding") \
  X(354, DERIVED, ATEN_REPLICATION_PAD3D_BACKWARD, "aten::replication_pad3d_backward", "T:grad_output T:self I*:padding") \
  X(355, DERIVED, ATEN_IM2COL, "aten::im2col", "T:self I*:kernel_size I*:dilation I*:padding I*:stride") \
  X(356, DERIVED, ATEN_COL2IM, "aten::col2im", "T:self I*:output_size I*:kernel_size I*:dilation I*:padding I*:stride") \
  X(357, DERIVED, ATEN_UNFOLD_BACKWARD, "aten::unfold_backward", "T:grad_in I*:input_sizes I:dim I:size I:step") \
  X(358, DERIVED, ATEN_NANSUM, "aten::nansum", "T:self I*?:dim B:keepdim D?:dtype") \
  X(359, DERIVED, ATEN_MEDIAN_DIM, "aten::median.dim", "T:self I:dim B:keepdim") \
  X(360, DERIVED, ATEN_NANMEDIAN_DIM, "aten::nanmedian.dim", "T:self I:dim B:keepdim") \
  X(361, DERIVED, ATEN_MEDIAN, "aten::median", "T:self") \
  X(362, DERIVED, ATEN_NANMEDIAN, "aten::nanmedian", "T:self") \
  X(363, DERIVED, ATEN_AS_STRIDED_COPY, "aten::as_strided_copy", "T:self I*:size I*:stride I?:storage_offset") \
  X(364, DERIVED, ATEN_ALIAS_COPY, "aten::alias_copy", "T:self") \
  X(365, DERIVED, ATEN_VIEW_COPY, "aten::view_copy", "T:self I*:size") \
  X(366, DERIVED, ATEN_SQUEEZE_COPY, "aten::squeeze_copy", "T:self") \
  X(367, DERIVED, ATEN_SQUEEZE_COPY_DIM, "aten::squeeze_copy.dim", "T:self I:dim") \
  X(368, DERIVED, ATEN_SQUEEZE_COPY_DIMS, "aten::squeeze_copy.dims", "T:self I*:dim") \
  X(369, DERIVED, ATEN_UNSQUEEZE_COPY, "aten::unsqueeze_copy", "T:self I:dim") \
  X(370, DERIVED, ATEN_EXPAND_COPY, "aten::expand_copy", "T:self I*:size B:implicit") \
  X(371, DERIVED, ATEN_PERMUTE_COPY, "aten::permute_copy", "T:self I*:dims") \
  X(372, DERIVED, ATEN_TRANSPOSE_COPY_INT, "aten::transpose_copy.int", "T:self I:dim0 I:dim1") \
  X(373, DERIVED, ATEN_T_COPY, "aten::t_copy", "T:self") \
  X(374, DERIVED, ATEN_SELECT_COPY_INT, "aten::select_copy.int", "T:self I:dim I:index") \
  X(375, DERIVED, ATEN_SLICE_COPY_TENSOR, "aten::slice_copy.Tensor", "T:self I:dim I?:start I?:end I:step") \
  X(376, DERIVED, ATEN_SLICE_SCATTER, "aten::slice_scatter", "T:self T:src I:dim I?:start I?:end I:step") \
  X(377, DERIVED, ATEN_UNFOLD_COPY, "aten::unfold_copy", "T:self I:dimension I:size I:step") \
  X(378, DERIVED, ATEN_DIAGONAL_COPY, "aten::diagonal_copy", "T:self I:offset I:dim1 I:dim2") \
  X(379, DERIVED, ATEN_DIAGONAL_SCATTER, "aten::diagonal_scatter", "T:self T:src I:offset I:dim1 I:dim2") \
  X(380, DERIVED, ATEN_DIAG_EMBED, "aten::diag_embed", "T:self I:offset I:dim1 I:dim2") \
  X(381, DERIVED, ATEN_TRACE, "aten::trace", "T:self") \
  X(382, DERIVED, ATEN_PIXEL_SHUFFLE, "aten::pixel_shuffle", "T:self I:upscale_factor") \
  X(383, DERIVED, ATEN_PIXEL_UNSHUFFLE, "aten::pixel_unshuffle", "T:self I:downscale_factor") \
  X(384, DERIVED, ATEN_CHANNEL_SHUFFLE, "aten::channel_shuffle", "T:self I:groups") \
  X(385, HOST, ATEN_LINALG_LSTSQ, "aten::linalg_lstsq", "T:self T:b S?:rcond Z?:driver") \
  X(386, DERIVED, ATEN_TRIL_INDICES, "aten::tril_indices", "I:row I:col I:offset D?:dtype") \
  X(387, DERIVED, ATEN_TRIU_INDICES, "aten::triu_indices", "I:row I:col I:offset D?:dtype") \
  X(388, DERIVED, ATEN_NARROW_COPY, "aten::narrow_copy", "T:self I:dim I:start I:length") \
  X(389, DERIVED, ATEN_SPLIT_WITH_SIZES_COPY, "aten::split_with_sizes_copy", "T:self I*:split_sizes I:dim") \
  X(390, DERIVED, ATEN_UNBIND_COPY_INT, "aten::unbind_copy.int", "T:self I:dim") \
  X(391, DERIVED, ATEN_SCATTER_REDUCE, "aten::scatter.reduce", "T:self I:dim T:index T:src Z:reduce") \
  X(392, DERIVED, ATEN_SCATTER_VALUE_REDUCE, "aten::scatter.value_reduce", "T:self I:dim T:index S:value Z:reduce") \
  X(393, DERIVED, ATEN_INDEX_REDUCE, "aten::index_reduce", "T:self I:dim T:index T:source Z:reduce B:include_self") \
  X(394, DERIVED, ATEN_INDEX_FILL_INT_TENSOR, "aten::index_fill.int_Tensor", "T:self I:dim T:index T:value") \
  X(395, DERIVED, ATEN_MODE, "aten::mode", "T:self I:dim B:keepdim") \
  X(396, DERIVED, ATEN_HISTC, "aten::histc", "T:self I:bins S:min S:max") \
  X(397, DERIVED, ATEN__EMBEDDING_BAG, "aten::_embedding_bag", "T:weight T:indices T:offsets B:scale_grad_by_freq I:mode B:sparse T?:per_sample_weights B:include_last_offset I:padding_idx") \
  X(398, DERIVED, ATEN__EMBEDDING_BAG_FORWARD_ONLY, "aten::_embedding_bag_forward_only", "T:weight T:indices T:offsets B:scale_grad_by_freq I:mode B:sparse T?:per_sample_weights B:include_last_offset I:padding_idx") \
  X(399, DERIVED, ATEN__EMBEDDING_BAG_BACKWARD, "aten::_embedding_bag_backward", "T:grad T:indices T:offsets T:offset2bag T:bag_size T:maximum_indices I:num_weights B:scale_grad_by_freq I:mode B:sparse T?:per_sample_weights I:padding_idx") \
  X(400, DERIVED, ATEN__EMBEDDING_BAG_PER_SAMPLE_WEIGHTS_BACKWARD, "aten::_embedding_bag_per_sample_weights_backward", "T:grad T:weight T:indices T:offsets T:offset2bag I:mode I:padding_idx") \
  X(401, DERIVED, ATEN_EMBEDDING_RENORM, "aten::embedding_renorm", "T:self T:indices S:max_norm S:norm_type") \
  X(402, DERIVED, ATEN__CDIST_FORWARD, "aten::_cdist_forward", "T:x1 T:x2 S:p I?:compute_mode") \
  X(403, DERIVED, ATEN__CDIST_BACKWARD, "aten::_cdist_backward", "T:grad T:x1 T:x2 S:p T:cdist") \
  X(404, DERIVED, ATEN__PDIST_FORWARD, "aten::_pdist_forward", "T:self S:p") \
  X(405, DERIVED, ATEN__PDIST_BACKWARD, "aten::_pdist_backward", "T:grad T:self S:p T:pdist") \
  X(406, DERIVED, ATEN_RENORM, "aten::renorm", "T:self S:p I:dim S:maxnorm") \
  X(407, DERIVED, ATEN_LINALG_CROSS, "aten::linalg_cross", "T:self T:other I:dim") \
  X(408, DERIVED, ATEN__TRILINEAR, "aten::_trilinear", "T:i1 T:i2 T:i3 I*:expand1 I*:expand2 I*:expand3 I*:sumdim I:unroll_dim") \
  X(409, DERIVED, ATEN_FREXP_TENSOR, "aten::frexp.Tensor", "T:self") \
  X(410, DERIVED, ATEN_NEXTAFTER, "aten::nextafter", "T:self T:other") \
  X(411, DERIVED, ATEN_GCD, "aten::gcd", "T:self T:other") \
  X(412, DERIVED, ATEN_LCM, "aten::lcm", "T:self T:other") \
  X(413, DERIVED, ATEN_LOGSPACE, "aten::logspace", "S:start S:end I:steps S:base D?:dtype") \
  X(414, DERIVED, ATEN_SPECIAL_BESSEL_J0, "aten::special_bessel_j0", "T:self") \
  X(415, DERIVED, ATEN_SPECIAL_BESSEL_J1, "aten::special_bessel_j1", "T:self") \
  X(416, DERIVED, ATEN_SPECIAL_BESSEL_Y0, "aten::special_bessel_y0", "T:self") \
  X(417, DERIVED, ATEN_SPECIAL_BESSEL_Y1, "aten::special_bessel_y1", "T:self") \
  X(418, DERIVED, ATEN_SPECIAL_MODIFIED_BESSEL_I0, "aten::special_modified_bessel_i0", "T:self") \
  X(419, DERIVED, ATEN_SPECIAL_MODIFIED_BESSEL_I1, "aten::special_modified_bessel_i1", "T:self") \
  X(420, DERIVED, ATEN_SPECIAL_MODIFIED_BESSEL_K0, "aten::special_modified_bessel_k0", "T:self") \
  X(421, DERIVED, ATEN_SPECIAL_MODIFIED_BESSEL_K1, "aten::special_modified_bessel_k1", "T:self") \
  X(422, DERIVED, ATEN_SPECIAL_SCALED_MODIFIED_BESSEL_K0, "aten::special_scaled_modified_bessel_k0", "T:x") \
  X(423, DERIVED, ATEN_SPECIAL_SCALED_MODIFIED_BESSEL_K1, "aten::special_scaled_modified_bessel_k1", "T:x") \
  X(424, DERIVED, ATEN_SPECIAL_SPHERICAL_BESSEL_J0, "aten::special_spherical_bessel_j0", "T:x") \
  X(425, DERIVED, ATEN_SPECIAL_AIRY_AI, "aten::special_airy_ai", "T:x") \
  X(426, DERIVED, ATEN_SPECIAL_CHEBYSHEV_POLYNOMIAL_T, "aten::special_chebyshev_polynomial_t", "T:x T:n") \
  X(427, DERIVED, ATEN_SPECIAL_SHIFTED_CHEBYSHEV_POLYNOMIAL_T, "aten::special_shifted_chebyshev_polynomial_t", "T:x T:n") \
  X(428, DERIVED, ATEN_SPECIAL_CHEBYSHEV_POLYNOMIAL_U, "aten::special_chebyshev_polynomial_u", "T:x T:n") \
  X(429, DERIVED, ATEN_SPECIAL_SHIFTED_CHEBYSHEV_POLYNOMIAL_U, "aten::special_shifted_chebyshev_polynomial_u", "T:x T:n") \
  X(430, DERIVED, ATEN_SPECIAL_CHEBYSHEV_POLYNOMIAL_V, "aten::special_chebyshev_polynomial_v", "T:x T:n") \
  X(431, DERIVED, ATEN_SPECIAL_SHIFTED_CHEBYSHEV_POLYNOMIAL_V, "aten::special_shifted_chebyshev_polynomial_v", "T:x T:n") \
  X(432, DERIVED, ATEN_SPECIAL_CHEBYSHEV_POLYNOMIAL_W, "aten::special_chebyshev_polynomial_w", "T:x T:n") \
  X(433, DERIVED, ATEN_SPECIAL_SHIFTED_CHEBYSHEV_POLYNOMIAL_W, "aten::special_shifted_chebyshev_polynomial_w", "T:x T:n") \
  X(434, DERIVED, ATEN_SPECIAL_ERFCX, "aten::special_erfcx", "T:self") \
  X(435, DERIVED, ATEN_SPECIAL_LOG_NDTR, "aten::special_log_ndtr", "T:self") \
  X(436, DERIVED, ATEN_SPECIAL_NDTRI, "aten::special_ndtri", "T:self") \
  X(437, DERIVED, ATEN_SPECIAL_ZETA, "aten::special_zeta", "T:self T:other") \
  X(438, DERIVED, ATEN__FFT_R2C, "aten::_fft_r2c", "T:self I*:dim I:normalization B:onesided") \
  X(439, DERIVED, ATEN__FFT_C2C, "aten::_fft_c2c", "T:self I*:dim I:normalization B:forward") \
  X(440, DERIVED, ATEN__FFT_C2R, "aten::_fft_c2r", "T:self I*:dim I:normalization I:last_dim_size") \
  X(441, DERIVED, ATEN_COMPLEX, "aten::complex", "T:real T:imag") \
  X(442, DERIVED, ATEN_POLAR, "aten::polar", "T:abs T:angle") \
  X(443, DERIVED, ATEN_CONJ_PHYSICAL, "aten::conj_physical", "T:self") \
  X(444, DERIVED, ATEN__CONJ_PHYSICAL, "aten::_conj_physical", "T:self") \
  X(445, DERIVED, ATEN_LINALG_CHOLESKY_EX, "aten::linalg_cholesky_ex", "T:self B:upper B:check_errors") \
  X(446, DERIVED, ATEN_LINALG_SOLVE_TRIANGULAR, "aten::linalg_solve_triangular", "T:self T:B B:upper B:left B:unitriangular") \
  X(447, DERIVED, ATEN_TRIANGULAR_SOLVE, "aten::triangular_solve", "T:self T:A B:upper B:transpose B:unitriangular") \
  X(448, DERIVED, ATEN__CHOLESKY_SOLVE_HELPER, "aten::_cholesky_solve_helper", "T:self T:A B:upper") \
  X(449, DERIVED, ATEN_CHOLESKY_INVERSE, "aten::cholesky_inverse", "T:self B:upper") \
  X(450, DERIVED, ATEN_LINALG_INV_EX, "aten::linalg_inv_ex", "T:A B:check_errors") \
  X(451, DERIVED, ATEN_LINALG_LU_FACTOR_EX, "aten::linalg_lu_factor_ex", "T:A B:pivot B:check_errors") \
  X(452, DERIVED, ATEN_LINALG_LU, "aten::linalg_lu", "T:A B:pivot") \
  X(453, DERIVED, ATEN_LU_UNPACK, "aten::lu_unpack", "T:LU_data T:LU_pivots B:unpack_data B:unpack_pivots") \
  X(454, DERIVED, ATEN_LINALG_LU_SOLVE, "aten::linalg_lu_solve", "T:LU T:pivots T:B B:left B:adjoint") \
  X(455, DERIVED, ATEN__LINALG_DET, "aten::_linalg_det", "T:A") \
  X(456, DERIVED, ATEN__LINALG_SLOGDET, "aten::_linalg_slogdet", "T:A") \
  X(457, DERIVED, ATEN__LINALG_SOLVE_EX, "aten::_linalg_solve_ex", "T:A T:B B:left B:check_errors") \
  X(458, DERIVED, ATEN_GEQRF, "aten::geqrf", "T:self") \
  X(459, DERIVED, ATEN_LINALG_QR, "aten::linalg_qr", "T:A Z:mode") \
  X(460, DERIVED, ATEN_LINALG_HOUSEHOLDER_PRODUCT, "aten::linalg_householder_product", "T:input T:tau") \
  X(461, DERIVED, ATEN_ORMQR, "aten::ormqr", "T:self T:input2 T:input3 B:left B:transpose") \
  X(462, DERIVED, ATEN_LINALG_MATRIX_EXP, "aten::linalg_matrix_exp", "T:self") \
  X(463, DERIVED, ATEN_GRID_SAMPLER_2D, "aten::grid_sampler_2d", "T:input T:grid I:interpolation_mode I:padding_mode B:align_corners") \
  X(464, DERIVED, ATEN_GRID_SAMPLER_2D_BACKWARD, "aten::grid_sampler_2d_backward", "T:grad_output T:input T:grid I:interpolation_mode I:padding_mode B:align_corners I*:output_mask") \
  X(465, DERIVED, ATEN_GRID_SAMPLER_3D, "aten::grid_sampler_3d", "T:input T:grid I:interpolation_mode I:padding_mode B:align_corners") \
  X(466, DERIVED, ATEN_GRID_SAMPLER_3D_BACKWARD, "aten::grid_sampler_3d_backward", "T:grad_output T:input T:grid I:interpolation_mode I:padding_mode B:align_corners I*:output_mask") \
  X(467, DERIVED, ATEN__UPSAMPLE_BILINEAR2D_AA, "aten::_upsample_bilinear2d_aa", "T:self I*:output_size B:align_corners S?:scales_h S?:scales_w") \
  X(468, DERIVED, ATEN__UPSAMPLE_BILINEAR2D_AA_BACKWARD, "aten::_upsample_bilinear2d_aa_backward", "T:grad_output I*:output_size I*:input_size B:align_corners S?:scales_h S?:scales_w") \
  X(469, DERIVED, ATEN__UPSAMPLE_BICUBIC2D_AA, "aten::_upsample_bicubic2d_aa", "T:self I*:output_size B:align_corners S?:scales_h S?:scales_w") \
  X(470, DERIVED, ATEN__UPSAMPLE_BICUBIC2D_AA_BACKWARD, "aten::_upsample_bicubic2d_aa_backward", "T:grad_output I*:output_size I*:input_size B:align_corners S?:scales_h S?:scales_w") \
  X(471, DERIVED, ATEN_MULTI_MARGIN_LOSS, "aten::multi_margin_loss", "T:self T:target S:p S:margin T?:weight I:reduction") \
  X(472, DERIVED, ATEN_MULTI_MARGIN_LOSS_BACKWARD, "aten::multi_margin_loss_backward", "T:grad_output T:self T:target S:p S:margin T?:weight I:reduction") \
  X(473, DERIVED, ATEN_MULTILABEL_MARGIN_LOSS_FORWARD, "aten::multilabel_margin_loss_forward", "T:self T:target I:reduction") \
  X(474, DERIVED, ATEN_MULTILABEL_MARGIN_LOSS_BACKWARD, "aten::multilabel_margin_loss_backward", "T:grad_output T:self T:target I:reduction T:is_target") \
  X(475, DERIVED, ATEN_FRACTIONAL_MAX_POOL2D, "aten::fractional_max_pool2d", "T:self I*:kernel_size I*:output_size T:random_samples") \
  X(476, DERIVED, ATEN_FRACTIONAL_MAX_POOL2D_BACKWARD, "aten::fractional_max_pool2d_backward", "T:grad_output T:self I*:kernel_size I*:output_size T:indices") \
  X(477, DERIVED, ATEN_FRACTIONAL_MAX_POOL3D, "aten::fractional_max_pool3d", "T:self I*:kernel_size I*:output_size T:random_samples") \
  X(478, DERIVED, ATEN_FRACTIONAL_MAX_POOL3D_BACKWARD, "aten::fractional_max_pool3d_backward", "T:grad_output T:self I*:kernel_size I*:output_size T:indices") \
  X(479, DERIVED, ATEN__NATIVE_BATCH_NORM_LEGIT, "aten::_native_batch_norm_legit", "T:input T?:weight T?:bias T:running_mean T:running_var B:training S:momentum S:eps") \
  X(480, DERIVED, ATEN__BATCH_NORM_WITH_UPDATE, "aten::_batch_norm_with_update", "T:input T?:weight T?:bias T:running_mean T:running_var S:momentum S:eps") \
  X(481, DERIVED, ATEN_BATCH_NORM_BACKWARD, "aten::batch_norm_backward", "T:grad_out T:input T:weight T?:running_mean T?:running_var T?:save_mean T?:save_var B:update S:eps I*:output_mask T:reserve") \
  X(482, DERIVED, ATEN__NATIVE_MULTI_HEAD_ATTENTION, "aten::_native_multi_head_attention", "T:query T:key T:value I:embed_dim I:num_head T:qkv_weight T:qkv_bias T:proj_weight T:proj_bias T?:mask B:need_weights B:average_attn_weights I?:mask_type") \
  X(483, DERIVED, ATEN__TRANSFORMER_ENCODER_LAYER_FWD, "aten::_transformer_encoder_layer_fwd", "T:src I:embed_dim I:num_heads T:qkv_weight T:qkv_bias T:proj_weight T:proj_bias B:use_gelu B:norm_first S:eps T:norm_weight_1 T:norm_bias_1 T:norm_weight_2 T:norm_bias_2 T:ffn_weight_1 T:ffn_bias_1 T:ffn_weight_2 T:ffn_bias_2 T?:mask I?:mask_type") \
  X(484, WHOLE, ATEN__LINALG_SVD, "aten::_linalg_svd", "T:A B:full_matrices B:compute_uv Z?:driver") \
  X(485, WHOLE, ATEN_LINALG_PINV_ATOL_RTOL_TENSOR, "aten::linalg_pinv.atol_rtol_tensor", "T:self T?:atol T?:rtol B:hermitian") \
  X(486, WHOLE, ATEN__LINALG_EIGH, "aten::_linalg_eigh", "T:A Z:UPLO B:compute_v") \
  X(487, WHOLE, ATEN_LINALG_EIG, "aten::linalg_eig", "T:self") \
  X(488, WHOLE, ATEN__LINALG_EIGVALS, "aten::_linalg_eigvals", "T:self") \
  X(489, WHOLE, ATEN_LINALG_LDL_FACTOR_EX, "aten::linalg_ldl_factor_ex", "T:self B:hermitian B:check_errors") \
  X(490, WHOLE, ATEN_LINALG_LDL_SOLVE, "aten::linalg_ldl_solve", "T:LD T:pivots T:B B:hermitian") \
  X(491, WHOLE, ATEN_CHOLESKY, "aten::cholesky", "T:self B:upper") \
  X(492, WHOLE, ATEN_IGAMMA, "aten::igamma", "T:self T:other") \
  X(493, WHOLE, ATEN_IGAMMAC, "aten::igammac", "T:self T:other") \
  X(494, WHOLE, ATEN_SPECIAL_HERMITE_POLYNOMIAL_H, "aten::special_hermite_polynomial_h", "T:x T:n") \
  X(495, WHOLE, ATEN_SPECIAL_HERMITE_POLYNOMIAL_HE, "aten::special_hermite_polynomial_he", "T:x T:n") \
  X(496, WHOLE, ATEN_SPECIAL_LAGUERRE_POLYNOMIAL_L, "aten::special_laguerre_polynomial_l", "T:x T:n") \
  X(497, WHOLE, ATEN_SPECIAL_LEGENDRE_POLYNOMIAL_P, "aten::special_legendre_polynomial_p", "T:x T:n") \
  X(498, WHOLE, ATEN_HISTOGRAM_BIN_CT, "aten::histogram.bin_ct", "T:self I:bins F*?:range T?:weight B:density") \
  X(499, WHOLE, ATEN_HISTOGRAM_BINS_TENSOR, "aten::histogram.bins_tensor", "T:self T:bins T?:weight B:density") \
  X(500, WHOLE, ATEN__HISTOGRAMDD_BIN_EDGES, "aten::_histogramdd_bin_edges", "T:self I*:bins F*?:range T?:weight B:density") \
  X(501, WHOLE, ATEN__HISTOGRAMDD_FROM_BIN_CTS, "aten::_histogramdd_from_bin_cts", "T:self I*:bins F*?:range T?:weight B:density") \
  X(502, WHOLE, ATEN__HISTOGRAMDD_FROM_BIN_TENSORS, "aten::_histogramdd_from_bin_tensors", "T:self T*:bins T?:weight B:density") \
  X(503, WHOLE, ATEN_HASH_TENSOR, "aten::hash_tensor", "T:self I*:dim B:keepdim I:mode") \
  X(504, WHOLE, ATEN_MASKED_SCATTER, "aten::masked_scatter", "T:self T:mask T:source") \
  X(505, WHOLE, ATEN_SEGMENT_REDUCE, "aten::segment_reduce", "T:data Z:reduce T?:lengths T?:indices T?:offsets I:axis B:unsafe S?:initial") \
  X(506, WHOLE, ATEN__SEGMENT_REDUCE_BACKWARD, "aten::_segment_reduce_backward", "T:grad T:output T:data Z:reduce T?:lengths T?:offsets I:axis S?:initial") \
  X(507, HOST, ATEN__CTC_LOSS, "aten::_ctc_loss", "T:log_probs T:targets I*:input_lengths I*:target_lengths I:blank B:zero_infinity") \
  X(508, HOST, ATEN__CTC_LOSS_BACKWARD, "aten::_ctc_loss_backward", "T:grad T:log_probs T:targets I*:input_lengths I*:target_lengths T:neg_log_likelihood T:log_alpha I:blank B:zero_infinity") \
  X(509, WHOLE, ATEN__CTC_LOSS_BACKWARD_TENSOR, "aten::_ctc_loss_backward.Tensor", "T:grad T:log_probs T:targets T:input_lengths T:target_lengths T:neg_log_likelihood T:log_alpha I:blank B:zero_infinity") \
  X(510, HOST, ATEN_UNIQUE_CONSECUTIVE, "aten::unique_consecutive", "T:self B:return_inverse B:return_counts I?:dim") \
  X(511, HOST, ATEN__UNIQUE, "aten::_unique", "T:self B:sorted B:return_inverse") \
  X(512, HOST, ATEN_POISSON, "aten::poisson", "T:self") \
  X(513, HOST, ATEN_BINOMIAL, "aten::binomial", "T:count T:prob") \
  X(514, WHOLE, LTC_CTC_LOSS, "ltc::ctc_loss", "T:log_probs T:targets T:input_lengths T:target_lengths I:blank B:zero_infinity") \
  X(515, WHOLE, ATEN__GROUPED_MM, "aten::_grouped_mm", "T:self T:mat2 T?:offs T?:bias D?:out_dtype") \
  X(516, DERIVED, LTC_ROLL, "ltc::roll", "T:self S:shift I:dim") \
  X(517, DERIVED, ATEN__FUSED_ADAM_, "aten::_fused_adam_", "T*:self T*:grads T*:exp_avgs T*:exp_avg_sqs T*:max_exp_avg_sqs T*:state_steps S:lr S:beta1 S:beta2 S:weight_decay S:eps B:amsgrad B:maximize T?:grad_scale T?:found_inf") \
  X(518, DERIVED, ATEN__FUSED_ADAM__TENSOR_LR, "aten::_fused_adam_.tensor_lr", "T*:self T*:grads T*:exp_avgs T*:exp_avg_sqs T*:max_exp_avg_sqs T*:state_steps T:lr S:beta1 S:beta2 S:weight_decay S:eps B:amsgrad B:maximize T?:grad_scale T?:found_inf") \
  X(519, DERIVED, ATEN__FUSED_ADAMW_, "aten::_fused_adamw_", "T*:self T*:grads T*:exp_avgs T*:exp_avg_sqs T*:max_exp_avg_sqs T*:state_steps S:lr S:beta1 S:beta2 S:weight_decay S:eps B:amsgrad B:maximize T?:grad_scale T?:found_inf") \
  X(520, DERIVED, ATEN__FUSED_ADAMW__TENSOR_LR, "aten::_fused_adamw_.tensor_lr", "T*:self T*:grads T*:exp_avgs T*:exp_avg_sqs T*:max_exp_avg_sqs T*:state_steps T:lr S:beta1 S:beta2 S:weight_decay S:eps B:amsgrad B:maximize T?:grad_scale T?:found_inf") \
  X(521, DERIVED, ATEN__FUSED_SGD_, "aten::_fused_sgd_", "T*:self T*:grads T*:momentum_buffer_list S:weight_decay S:momentum S:lr S:dampening B:nesterov B:maximize B:is_first_step T?:grad_scale T?:found_inf") \
  X(522, DERIVED, ATEN__FUSED_SGD__TENSOR_LR, "aten::_fused_sgd_.tensor_lr", "T*:self T*:grads T*:momentum_buffer_list S:weight_decay S:momentum T:lr S:dampening B:nesterov B:maximize B:is_first_step T?:grad_scale T?:found_inf") \
  X(523, DERIVED, ATEN__FUSED_ADAGRAD_, "aten::_fused_adagrad_", "T*:self T*:grads T*:state_sums T*:state_steps S:lr S:lr_decay S:weight_decay S:eps B:maximize T?:grad_scale T?:found_inf") \
  X(524, DERIVED, ATEN__FUSED_ADAGRAD__TENSOR_LR, "aten::_fused_adagrad_.tensor_lr", "T*:self T*:grads T*:state_sums T*:state_steps T:lr S:lr_decay S:weight_decay S:eps B:maximize T?:grad_scale T?:found_inf") \
  X(525, DERIVED, LTC_AS_STRIDED, "ltc::as_strided", "T:self I*:size I*:stride S:storage_offset") \
  X(526, DERIVED, LTC_AS_STRIDED_SCATTER, "ltc::as_strided_scatter", "T:self T:src I*:size I*:stride S:storage_offset") \
  X(527, DERIVED, LTC_PACKED_LSTM_LAYER, "ltc::packed_lstm_layer", "T:input T:hx T:cx T:weight_ih T:weight_hh T?:bias_ih T?:bias_hh T?:weight_hr I*:batch_sizes B:reverse B:train") \
  X(528, DERIVED, LTC_PACKED_LSTM_LAYER_BACKWARD, "ltc::packed_lstm_layer_backward", "T?:grad_output T?:grad_hy T?:grad_cy T:input T:hx T:cx T:weight_ih T:weight_hh T?:bias_ih T?:bias_hh T?:weight_hr T:output T:hy T:cy T:reserve I*:batch_sizes B:reverse") \
  X(529, DERIVED, LTC_PACKED_GRU_LAYER, "ltc::packed_gru_layer", "T:input T:hx T:weight_ih T:weight_hh T?:bias_ih T?:bias_hh I*:batch_sizes B:reverse B:train") \
  X(530, DERIVED, LTC_PACKED_GRU_LAYER_BACKWARD, "ltc::packed_gru_layer_backward", "T?:grad_output T?:grad_hy T:input T:hx T:weight_ih T:weight_hh T?:bias_ih T?:bias_hh T:output T:hy T:reserve I*:batch_sizes B:reverse") \
  X(531, DERIVED, LTC_PACKED_RNN_LAYER, "ltc::packed_rnn_layer", "T:input T:hx T:weight_ih T:weight_hh T?:bias_ih T?:bias_hh Z:nonlinearity I*:batch_sizes B:reverse") \
  X(532, DERIVED, LTC_PACKED_RNN_LAYER_BACKWARD, "ltc::packed_rnn_layer_backward", "T?:grad_output T?:grad_hy T:input T:hx T:weight_ih T:weight_hh T?:bias_ih T?:bias_hh T:output Z:nonlinearity I*:batch_sizes B:reverse")

enum {
#define LTC_OP_ID(id, tier, identifier, name, operands) LTC_OP_##identifier = id,
  LTC_OPSET(LTC_OP_ID)
#undef LTC_OP_ID
};

#ifdef __cplusplus
extern "C" {
#endif

/* The operands of an op; NULL for an id that is not here. */
static inline const char* ltc_op_operands(unsigned id) {
  switch (id) {
#define LTC_OP_OPERANDS(id, tier, identifier, name, operands) case id: return operands;
    LTC_OPSET(LTC_OP_OPERANDS)
#undef LTC_OP_OPERANDS
    default: return 0;
  }
}

#ifdef __cplusplus
}
#endif
#endif /* LTC_OPSET_H */
