// Special functions. Sources: Cephes (Moshier, Methods and programs for mathematical functions, 1989), which PyTorch's own
// kernels follow too, unless a function says otherwise.
#include <limits>
#include <numbers>

#include "core/decompose/families.h"

namespace ltc::decompose {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

template <Val (*kFormula)(Val)>
Results real(const Call& call) {
  return kFormula(cast(call.tensor("self"), math_dtype(call.result().dtype)));
}

// Coefficients from the highest power down.
Val polynomial(Val x, std::span<const double> coefficients) {
  Val result = full_like(x, coefficients[0]);
  for (const double c : coefficients.subspan(1)) result = result * x + c;
  return result;
}

// A sum of Chebyshev polynomials at x / 2, half of the first term; Clenshaw's recurrence.
Val chebyshev(Val x, std::span<const double> coefficients) {
  Val b0 = full_like(x, coefficients[0]), b1 = zeros_like(x), b2 = b1;
  for (const double c : coefficients.subspan(1)) {
    b2 = b1, b1 = b0;
    b0 = x * b1 - b2 + c;
  }
  return (b0 - b2) * 0.5;
}

// x is raised above 10 by the recurrence psi(x) = psi(x + 1) - 1 / x; there the asymptotic series holds. Negative x by
// reflection.
Val digamma(Val x) {
  constexpr double kSeries[] = {8.33333333333333333333E-2,  -2.10927960927960927961E-2, 7.57575757575757575758E-3,
                                -4.16666666666666666667E-3, 3.96825396825396825397E-3,  -8.33333333333333333333E-3,
                                8.33333333333333333333E-2};
  const Val negative = x < 0, folded = where(negative, 1 - x, x);
  Val y = folded, shift = zeros_like(x);
  for (int i = 0; i < 10; ++i) {
    const Val small = y < 10;
    shift = where(small, shift - 1 / y, shift);
    y = where(small, y + 1, y);
  }
  const Val z = 1 / (y * y), value = shift + log(y) - 0.5 / y - z * polynomial(z, kSeries);
  const Val fraction = x - trunc(x), reflected = value - std::numbers::pi / tan(fraction * std::numbers::pi);
  const Val whole = negative & (floor(x) == x);
  const Val pole = where(sign_of_zero(x) < 0, full_like(x, kInf), full_like(x, -kInf));
  return where(whole, full_like(x, kNan), where(x == 0, pole, where(negative, reflected, value)));
}

// Giles, Approximating the erfinv function, GPU Computing Gems 2 (2011), the single precision form, and two Newton steps.
Val erfinv(Val x) {
  constexpr double kCentre[] = {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                                -0.00125372503, -0.00417768164, 0.246640727,    1.50140941};
  constexpr double kTail[] = {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                              -0.0076224613,   0.00943887047,  1.00167406,    2.83297682};
  const Val w = -(log1p(-x) + log1p(x));
  Val y = where(w < 5, polynomial(w - 2.5, kCentre), polynomial(sqrt(w) - 3, kTail)) * x;
  for (int i = 0; i < 2; ++i) {
    const Val slope = exp(-(y * y)) * (2 * std::numbers::inv_sqrtpi), step = (erf(y) - x) / slope;
    y = where(abs(step) < 1, y - step, y);
  }
  const Val outside = where(abs(x) == 1, x * kInf, full_like(x, kNan));
  return where(abs(x) < 1, y, outside);
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

Val entropy(Val x) { return where(is_nan(x), x, where(x > 0, -x * log(x), where(x == 0, zeros_like(x), full_like(x, -kInf)))); }

Results polygamma(const Call& call) {
  const Val x = cast(call.tensor("self"), math_dtype(call.result().dtype));
  const int64_t n = call.integer("n");
  if (n == 0) return digamma(x);
  if (n == 1) {  // reflection, recurrence and series, as PyTorch's trigamma
    const Val negative = x < 0.5, s = sin(x * std::numbers::pi);
    Val y = where(negative, 1 - x, x), total = where(negative, (std::numbers::pi * std::numbers::pi) / (s * s), zeros_like(x));
    Val series = zeros_like(x);
    for (int i = 0; i < 6; ++i) {
      series = series + 1 / (y * y);
      y = y + 1;
    }
    const Val z = 1 / (y * y);
    series = series + (1 + 0.5 / y + z * (1.0 / 6 - z * (1.0 / 30 - z * (1.0 / 42)))) / y;
    return total + where(negative, -series, series);
  }
  return nothing();  // higher ones are zeta functions: as many terms as the value is negative
}

constexpr Decomposition kRules[] = {
    {"aten::digamma", real<digamma>}, {"aten::erfinv", real<erfinv>},        {"aten::polygamma", polygamma},
    {"aten::i0", real<i0>},           {"aten::special_i0e", real<i0e>},      {"aten::special_i1", real<i1>},
    {"aten::special_i1e", real<i1e>}, {"aten::special_entr", real<entropy>},
};

}  // namespace

std::span<const Decomposition> special_functions() { return kRules; }

}  // namespace ltc::decompose
