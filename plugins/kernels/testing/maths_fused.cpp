// maths.h with fused multiply-add, for maths_test.cpp: compiled for machines that have it.
#include "kernels/print/maths.h"

extern float (*const kFused[])(float);
float (*const kFused[])(float) = {ltc_exp_f32,  ltc_expm1_f32, ltc_log_f32,    ltc_log1p_f32,
                                  ltc_tanh_f32, ltc_erf_f32,   ltc_sigmoid_f32};
