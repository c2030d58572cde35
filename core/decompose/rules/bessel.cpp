// Bessel functions and Airy's, as Cephes (Moshier, 1989) computes them, which PyTorch's kernels follow.
#include "core/decompose/support/bessel_tables.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "core/decompose/rules/families.h"
#include "core/decompose/support/series.h"

namespace ltc::decompose {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = std::numbers::pi;

Val ratio(Val x, std::span<const double> over, std::span<const double> under) {
  return polynomial(x, over) / polynomial(x, under);
}

// Hankel's expansion beyond 5: amplitude times the cosine, or the sine, of x - shift.
struct Wave {
  Val cosine, sine;
};
Wave wave(Val x, double shift, std::span<const double> pp, std::span<const double> pq, std::span<const double> qp,
          std::span<const double> qq) {
  const Val w = 5.0 / x, z = w * w, p = ratio(z, pp, pq), q = w * ratio(z, qp, qq), angle = x - shift;
  const Val scale = std::sqrt(2 / kPi) / sqrt(x);
  return {(p * cos(angle) - q * sin(angle)) * scale, (p * sin(angle) + q * cos(angle)) * scale};
}
Wave wave_0(Val x) { return wave(x, kPi / 4, kJ0PP, kJ0PQ, kJ0QP, kJ0QQ); }
Wave wave_1(Val x) { return wave(x, 3 * kPi / 4, kJ1PP, kJ1PQ, kJ1QP, kJ1QQ); }

// With the squares of the first two zeros taken out.
Val small_j0(Val x) {
  const Val z = x * x;
  return where(abs(x) < 1e-5, 1 - z * 0.25, (z - 5.78318596294678452118) * (z - 30.4712623436620863991) * ratio(z, kJ0RP, kJ0RQ));
}
Val small_j1(Val x) {
  const Val z = x * x;
  return ratio(z, kJ1RP, kJ1RQ) * x * (z - 14.6819706421238932572) * (z - 49.2184563216946036703);
}
Val j0(Val x) {
  const Val a = abs(x);
  return where(a <= 5, small_j0(a), wave_0(maximum(a, 5)).cosine);
}
Val j1(Val x) {
  const Val a = abs(x), value = where(a <= 5, small_j1(a), wave_1(maximum(a, 5)).cosine);
  return where(x < 0, -value, value);
}

// A function that is defined above 0 only, and begins there at an infinity.
Val above_zero(Val x, double at_zero, Val value) {
  return where(x > 0, value, where(x == 0, full_like(x, at_zero), full_like(x, kNan)));
}
Val y0(Val x) {
  const Val z = x * x, small = ratio(z, kY0P, kY0Q) + log(x) * small_j0(x) * (2 / kPi);
  return above_zero(x, -kInf, where(x <= 5, small, wave_0(maximum(x, 5)).sine));
}
Val y1(Val x) {
  const Val z = x * x, small = x * ratio(z, kY1P, kY1Q) + (small_j1(x) * log(x) - 1 / x) * (2 / kPi);
  return above_zero(x, -kInf, where(x <= 5, small, wave_1(maximum(x, 5)).sine));
}

constexpr double kI0Small[] = {
    -4.41534164647933937950E-18, 3.33079451882223809783E-17, -2.43127984654795469359E-16, 1.71539128555513303061E-15,
    -1.16853328779934516808E-14, 7.67618549860493561688E-14, -4.85644678311192946090E-13, 2.95505266312963983461E-12,
    -1.72682629144155570723E-11, 9.67580903537323691224E-11, -5.18979560163526290666E-10, 2.65982372468238665035E-9,
    -1.30002500998624804212E-8,  6.04699502254191894932E-8,  -2.67079385394061173391E-7,  1.11738753912010371815E-6,
    -4.41673835845875056359E-6,  1.64484480707288970893E-5,  -5.75419501008210370398E-5,  1.88502885095841655729E-4,
    -5.76375574538582365885E-4,  1.63947561694133579842E-3,  -4.32430999505057594430E-3,  1.05464603945949983183E-2,
    -2.37374148058994688156E-2,  4.93052842396707084878E-2,  -9.49010970480476444210E-2,  1.71620901522208775349E-1,
    -3.04682672343198398683E-1,  6.76795274409476084995E-1};
constexpr double kI0Large[] = {
    -7.23318048787475395456E-18, -4.83050448594418207126E-18, 4.46562142029675999901E-17,  3.46122286769746109310E-17,
    -2.82762398051658348494E-16, -3.42548561967721913462E-16, 1.77256013305652638360E-15,  3.81168066935262242075E-15,
    -9.55484669882830764870E-15, -4.15056934728722208663E-14, 1.54008621752140982691E-14,  3.85277838274214270114E-13,
    7.18012445138366623367E-13,  -1.79417853150680611778E-12, -1.32158118404477131188E-11, -3.14991652796324136454E-11,
    1.18891471078464383424E-11,  4.94060238822496958910E-10,  3.39623202570838634515E-9,   2.26666899049817806459E-8,
    2.04891858946906374183E-7,   2.89137052083475648297E-6,   6.88975834691682398426E-5,   3.36911647825569408990E-3,
    8.04490411014108831608E-1};
constexpr double kI1Small[] = {
    2.77791411276104639959E-18, -2.11142121435816608115E-17, 1.55363195773620046921E-16, -1.10559694773538630805E-15,
    7.60068429473540693410E-15, -5.04218550472791168711E-14, 3.22379336594557470981E-13, -1.98397439776494371520E-12,
    1.17361862988909016308E-11, -6.66348972350202774223E-11, 3.62559028155211703701E-10, -1.88724975172282928790E-9,
    9.38153738649577178388E-9,  -4.44505912879632808065E-8,  2.00329475355213526229E-7,  -8.56872026469545474066E-7,
    3.47025130813767847674E-6,  -1.32731636560394358279E-5,  4.78156510755005422638E-5,  -1.61760815825896745588E-4,
    5.12285956168575772895E-4,  -1.51357245063125314899E-3,  4.15642294431288815669E-3,  -1.05640848946261981558E-2,
    2.47264490306265168283E-2,  -5.29459812080949914269E-2,  1.02643658689847095384E-1,  -1.76416518357834055153E-1,
    2.52587186443633654823E-1};
constexpr double kI1Large[] = {
    7.51729631084210481353E-18,  4.41434832307170791151E-18,  -4.65030536848935832153E-17, -3.20952592199342395980E-17,
    2.96262899764595013876E-16,  3.30820231092092828324E-16,  -1.88035477551078244854E-15, -3.81440307243700780478E-15,
    1.04202769841288027642E-14,  4.27244001671195135429E-14,  -2.10154184277266431302E-14, -4.08355111109219731823E-13,
    -7.19855177624590851209E-13, 2.03562854414708950722E-12,  1.41258074366137813316E-11,  3.25260358301548823856E-11,
    -1.89749581235054123450E-11, -5.58974346219658380687E-10, -3.83538038596423702205E-9,  -2.63146884688951950684E-8,
    -2.51223623787020892529E-7,  -3.88256480887769039346E-6,  -1.10588938762623716291E-4,  -9.76109749136146840777E-3,
    7.78576235018280120474E-1};

// exp(-|x|) I0(x) and exp(-|x|) I1(x).
Val i0e(Val x) {
  const Val a = abs(x);
  return where(a <= 8, chebyshev(a * 0.5 - 2, kI0Small), chebyshev(32.0 / a - 2, kI0Large) / sqrt(a));
}
Val i1e(Val x) {
  const Val a = abs(x);
  const Val value = where(a <= 8, chebyshev(a * 0.5 - 2, kI1Small) * a, chebyshev(32.0 / a - 2, kI1Large) / sqrt(a));
  return where(x < 0, -value, value);
}
Val i0(Val x) { return exp(abs(x)) * i0e(x); }
Val i1(Val x) { return exp(abs(x)) * i1e(x); }

Val small_k0(Val x) { return chebyshev(x * x - 2, kK0Small) - log(x * 0.5) * i0(x); }
Val small_k1(Val x) { return log(x * 0.5) * i1(x) + chebyshev(x * x - 2, kK1Small) / x; }
Val k0(Val x) { return above_zero(x, kInf, where(x <= 2, small_k0(x), exp(-x) * chebyshev(8.0 / x - 2, kK0Large) / sqrt(x))); }
Val k1(Val x) { return above_zero(x, kInf, where(x <= 2, small_k1(x), exp(-x) * chebyshev(8.0 / x - 2, kK1Large) / sqrt(x))); }
Val k0e(Val x) { return above_zero(x, kInf, where(x <= 2, small_k0(x) * exp(x), chebyshev(8.0 / x - 2, kK0Large) / sqrt(x))); }
Val k1e(Val x) { return above_zero(x, kInf, where(x <= 2, small_k1(x) * exp(x), chebyshev(8.0 / x - 2, kK1Large) / sqrt(x))); }

Val spherical_j0(Val x) {
  constexpr double kSeries[] = {1 / 6227020800.0, -1 / 39916800.0, 1 / 362880.0, -1 / 5040.0, 1 / 120.0, -1 / 6.0, 1};
  return where(abs(x) == kInf, zeros_like(x), where(abs(x) < 0.5, polynomial(x * x, kSeries), sin(x) / x));
}

// Maclaurin's series near 0, as many terms as double precision needs there; waves below, an exponential above.
Val airy(Val x) {
  constexpr int kTerms = 16;
  const Val cube = x * x * x;
  Val even = ones_like(x), odd = x, m = even, n = odd;
  for (int k = 1; k <= kTerms; ++k) {
    m = m * cube / static_cast<double>((3 * k - 1) * 3 * k), n = n * cube / static_cast<double>(3 * k * (3 * k + 1));
    even = even + m, odd = odd + n;
  }
  const Val centre = even * 0.355028053887817239260 - odd * 0.258819403792806798405;
  const Val a = maximum(abs(x), 2.09), zeta = a * sqrt(a) * (2.0 / 3), z = 1 / zeta, root = sqrt(sqrt(a));
  const Val above = ratio(z, kAiryN, kAiryD) * (std::numbers::inv_sqrtpi / 2) / (root * exp(zeta));
  const Val angle = zeta + kPi / 4, f = z * z * ratio(z * z, kAiryFn, kAiryFd) + 1, g = z * ratio(z * z, kAiryGn, kAiryGd);
  const Val below = (sin(angle) * f - cos(angle) * g) * std::numbers::inv_sqrtpi / root;
  const Val value = where(x >= 2.09, above, where(x < -2.09, below, centre));
  return where(abs(x) == kInf, full_like(x, kNan), where(x > 103.892, zeros_like(x), where(is_nan(x), x, value)));
}

constexpr Decomposition kRules[] = {
    {"aten::i0", real<i0>},
    {"aten::special_i0e", real<i0e>},
    {"aten::special_i1", real<i1>},
    {"aten::special_i1e", real<i1e>},
    {"aten::special_bessel_j0", real<j0>},
    {"aten::special_bessel_j1", real<j1>},
    {"aten::special_bessel_y0", real<y0>},
    {"aten::special_bessel_y1", real<y1>},
    {"aten::special_modified_bessel_i0", real<i0>},
    {"aten::special_modified_bessel_i1", real<i1>},
    {"aten::special_modified_bessel_k0", real<k0>},
    {"aten::special_modified_bessel_k1", real<k1>},
    {"aten::special_scaled_modified_bessel_k0", real<k0e>},
    {"aten::special_scaled_modified_bessel_k1", real<k1e>},
    {"aten::special_spherical_bessel_j0", real<spherical_j0>},
    {"aten::special_airy_ai", real<airy>},
};

}  // namespace

std::span<const Decomposition> bessel_functions() { return kRules; }

}  // namespace ltc::decompose
