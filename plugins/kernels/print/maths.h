// Mathematical functions of float with the same bits from every compiler: float ltc_exp_f32(float), and so on.
//
// No branches, calls or tables, so that compilers turn loops over them into vectors. To be compiled with -ffp-contract=off and
// without fast mathematics; GCC finds the vectors with -fno-trapping-math only. NaN, infinities, the signs of zeros, denormal
// arguments and results are as in C's Annex F. Machines without fused multiply-add get a product and a sum.
//
// Largest error in units of the last place, over every 97th float:
//             exp   expm1  log   log1p  tanh  erf   sigmoid
//   fused     0.86  0.99   0.92  0.91   1.55  1.00  0.95
//   without   1.17  0.99   1.07  1.07   1.43  1.18  1.37
//
// Exponentials and logarithms reduce their argument as W. Cody and W. Waite do (Software Manual for the Elementary Functions,
// 1980); erf beyond 0.85 is 1 - exp of a polynomial, as N. Juffa has it. The polynomials are minimax for the relative error, by
// Remez' exchange, with coefficients rounded to float one after another, the lowest first.
//
// To compile these for another type, OpenCL's vectors, define before this text:
//   F, U                 the type, the unsigned integers as wide
//   BITS(x), FLOAT(u)    the bits of a number, the number with these bits
//   FUSED(a, b, c)       a * b + c, rounded once
//   NAME(f)              what the function f is called
#ifndef NAME
#define F float
#define U unsigned int
#define BITS(x) ltc_maths_bits(x)
#define FLOAT(u) ltc_maths_float(u)
#define FUSED(a, b, c) __builtin_fmaf(a, b, c)
#define NAME(f) ltc_##f##_f32
static inline U BITS(F x) {
  U u;
  __builtin_memcpy(&u, &x, sizeof u);
  return u;
}
static inline F FLOAT(U u) {
  F x;
  __builtin_memcpy(&x, &u, sizeof x);
  return x;
}
#endif

#if defined(__FMA__) || defined(__FP_FAST_FMAF) || defined(FP_FAST_FMAF) || defined(__aarch64__)
#define FMA(a, b, c) FUSED(a, b, c)
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#endif
#define C(number) ((F)(number##f))
#define STEP(sum, x, number) FMA(sum, x, C(number))  // of Horner's rule
#define MAGNITUDE(x) FLOAT(BITS(x) & 0x7fffffffu)
#define WITH_SIGN_OF(a, x) FLOAT((BITS(x) & 0x7fffffffu) | (BITS(a) & 0x80000000u))
#define INFINITE FLOAT((U)(0x7f800000u))
#define NOT_A_NUMBER FLOAT((U)(0x7fc00000u))

// x = n log 2 + rest. n stands in the last bits of SHIFTED(x); LAST(shifted, k) is n + k.
#define SHIFTED(x) FMA(x, C(0x1.715476p0), C(0x1.8p23))
#define LAST(shifted, k) (BITS(shifted) - (0x4b400000u - (k)))
#define REST(x, n) FMA(n, C(-0x1.7f7d1cp-20), FMA(n, C(-0x1.62e4p-1), x))

// y times 2^n, for -252 <= n <= 254: in two factors, of which the second may overflow or lose digits.
static inline F NAME(scaled)(F y, F shifted) {
  const U n = LAST(shifted, 256u), first = n >> 1;
  return y * FLOAT((first - 1u) << 23) * FLOAT((n - first - 1u) << 23);
}

// exp(f), |f| <= log(2) / 2
static inline F NAME(exp_near)(F f) {
  F r = C(0x1.6a4946p-10);
  r = STEP(r, f, 0x1.123d2p-7);
  r = STEP(r, f, 0x1.5558b6p-5);
  r = STEP(r, f, 0x1.55548cp-3);
  r = STEP(r, f, 0x1.fffffcp-2);
  r = STEP(r, f, 1.0);
  return STEP(r, f, 1.0);
}

// -105 <= x <= 89
static inline F NAME(exp_within)(F x) {
  const F shifted = SHIFTED(x), n = shifted - C(0x1.8p23);
  return NAME(scaled)(NAME(exp_near)(REST(x, n)), shifted);
}

static inline F NAME(exp)(F a) {
  const F x = a > C(89.0) ? C(89.0) : a;
  return NAME(exp_within)(x < C(-105.0) ? C(-105.0) : x);
}

// Where the result is a normal number.
static inline F NAME(exp_normal)(F x) {
  const F shifted = SHIFTED(x), n = shifted - C(0x1.8p23);
  return NAME(exp_near)(REST(x, n)) * FLOAT(LAST(shifted, 127u) << 23);
}

// (exp(f) - 1 - f) / f^2, |f| <= log(2) / 2
static inline F NAME(exp_tail)(F f) {
  F r = C(0x1.9c2e94p-13);
  r = STEP(r, f, 0x1.6d3852p-10);
  r = STEP(r, f, 0x1.1113ecp-7);
  r = STEP(r, f, 0x1.5554f8p-5);
  r = STEP(r, f, 0x1.555554p-3);
  return STEP(r, f, 0.5);
}

static inline F NAME(expm1)(F a) {
  F x = a > C(89.0) ? C(89.0) : a;
  x = x < C(-30.0) ? C(-30.0) : x;
  const F shifted = SHIFTED(x), n = shifted - C(0x1.8p23), f = REST(x, n);
  const F square = a == C(0.0) ? a : f * f;  // keeps the sign of zero
  // n = 0: expm1(f). n = 1: twice expm1(f) + 0.5. Else twice half of 2^n expm1(f) + 2^n - 1: all of it would overflow too soon.
  const F near = FMA(NAME(exp_tail)(f), square, n == C(1.0) ? f + C(0.5) : f);
  const F power = FLOAT(LAST(shifted, 126u) << 23);
  const F less = power - C(0.5), lost = (power - less) - C(0.5);
  const F sum = n == C(1.0) ? near : FMA(near, power, lost) + less;
  return n == C(0.0) ? near : sum + sum;
}

static inline F NAME(sigmoid)(F a) {
  // exp(-|a|) and then the quotient in two floats each; only the second's sum is rounded.
  F x = FLOAT(BITS(a) | 0x80000000u);
  x = x < C(-105.0) ? C(-105.0) : x;
  const F shifted = SHIFTED(x), n = shifted - C(0x1.8p23), f = REST(x, n);
  const F m = FMA(NAME(exp_tail)(f), f * f, f), y = C(1.0) + m;
  const F e = NAME(scaled)(y, shifted), e_low = NAME(scaled)(m - (y - C(1.0)), shifted);
  const F divisor = C(1.0) + e, divisor_low = (e - (divisor - C(1.0))) + e_low;
  const F top = a < C(0.0) ? e : C(1.0), top_low = a < C(0.0) ? e_low : C(0.0);
  const F q = top / divisor, inverse = a < C(0.0) ? C(1.0) - q : q;
  return FMA(FMA(-q, divisor, top) + FMA(-q, divisor_low, top_low), inverse, q);
}

static inline F NAME(tanh)(F a) {
  const F x = MAGNITUDE(a), square = a * a;
  F near = C(0x1.0d4f5ap-6);
  near = STEP(near, square, -0x1.af7cf2p-5);
  near = STEP(near, square, 0x1.10cefcp-3);
  near = STEP(near, square, -0x1.555452p-2);
  near = FMA(near * square, x, x);
  const F least = x > C(10.0) ? C(10.0) : x;  // beyond, the result is 1
  const F far = C(1.0) - C(2.0) / (NAME(exp_normal)(least + least) + C(1.0));
  return WITH_SIGN_OF(a, x < C(0.55) ? near : far);
}

static inline F NAME(erf)(F a) {
  const F x = MAGNITUDE(a), square = a * a;
  F near = C(-0x1.4a7c02p-11);
  near = STEP(near, square, 0x1.4afb4ep-8);
  near = STEP(near, square, -0x1.b724d2p-6);
  near = STEP(near, square, 0x1.ce247cp-4);
  near = STEP(near, square, -0x1.812722p-2);
  near = STEP(near, square, 0x1.06eba8p-3);
  near = FMA(near, x, x);
  // log(1 - erf(x)), 0.85 <= x <= 4; beyond, the result is 1
  const F y = x > C(4.0) ? C(4.0) : x;
  F r = C(-0x1.12331p-17);
  r = STEP(r, y, 0x1.32ec4ep-12);
  r = STEP(r, y, -0x1.cdae64p-9);
  r = STEP(r, y, 0x1.813d2ap-6);
  r = STEP(r, y, -0x1.b1fce6p-4);
  r = STEP(r, y, -0x1.454874p-1);
  r = STEP(r, y, -0x1.0763dp-3);
  const F far = C(1.0) - NAME(exp_normal)(FMA(r, y, -y));
  return WITH_SIGN_OF(a, x < C(0.855) ? near : far);
}

// The exponent e of m 2^e as a number, for u = BITS(m 2^e) - BITS(least m).
#define EXPONENT(u) (FLOAT(((u) + 0x40000000u) >> 23 | 0x4b000000u) - C(8388736.0))

static inline F NAME(log)(F a) {
  const F x = a < C(0x1p-126) ? a * C(0x1p23) : a;
  // x = m 2^e, 2/3 <= m < 4/3
  const U u = BITS(x) - 0x3f2aaaabu;
  const F e = EXPONENT(u) - (a < C(0x1p-126) ? C(23.0) : C(0.0));
  const F m = FLOAT(BITS(x) - (u & 0xff800000u)) - C(1.0), square = m * m;
  F r = C(-0x1.085854p-3), t = C(0x1.1e7b28p-3);
  r = STEP(r, square, -0x1.f306cap-4);
  t = STEP(t, square, 0x1.1ed4cep-3);
  r = STEP(r, square, -0x1.559d26p-3);
  t = STEP(t, square, 0x1.99d044p-3);
  r = STEP(r, square, -0x1.fffefcp-3);
  r = FMA(t, m, r);
  r = STEP(r, m, 0x1.555506p-2);
  r = STEP(r, m, -0.5);
  r = FMA(e, C(0x1.62e43p-1), FMA(r, square, m));
  const F other = a < C(0.0) ? NOT_A_NUMBER : a == C(0.0) ? -INFINITE : a;
  return BITS(a) - 1u < 0x7f7fffffu ? r : other;
}

static inline F NAME(log1p)(F a) {
  // 1 + a = (1 + m) 2^e, 3/4 <= 1 + m < 3/2, from the digits of a
  const U u = BITS(C(1.0) + a) - 0x3f400000u, power = u & 0xff800000u;
  const F e = EXPONENT(u);
  const F m = FLOAT(BITS(a) - power) + FMA(C(0.25), FLOAT(0x40800000u - power), C(-1.0)), square = m * m;
  F r = C(-0x1.70f036p-5), t = C(0x1.ac7406p-4);
  r = STEP(r, square, -0x1.0d8a86p-3);
  t = STEP(t, square, 0x1.2884p-3);
  r = STEP(r, square, -0x1.54eeb6p-3);
  t = STEP(t, square, 0x1.99699ep-3);
  r = STEP(r, square, -0x1.00004ap-2);
  r = FMA(t, m, r);
  r = STEP(r, m, 0x1.5555a4p-2);
  r = STEP(r, m, -0.5);
  r = FMA(e, C(0x1.62e43p-1), FMA(r, square, m));
  const F other = a < C(-1.0) ? NOT_A_NUMBER : a == C(-1.0) ? -INFINITE : a;
  r = a > C(-1.0) && BITS(a) != 0x7f800000u ? r : other;
  return a == C(0.0) ? a : r;
}

#undef C
#undef STEP
#undef MAGNITUDE
#undef WITH_SIGN_OF
#undef INFINITE
#undef NOT_A_NUMBER
#undef SHIFTED
#undef LAST
#undef REST
#undef EXPONENT
#undef F
#undef U
#undef BITS
#undef FLOAT
#undef FUSED
#undef FMA
#undef NAME
