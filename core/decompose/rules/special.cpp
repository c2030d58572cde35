// Special functions. Sources: Cephes (Moshier, Methods and programs for mathematical functions, 1989), which PyTorch's own
// kernels follow too, unless a function says otherwise.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/decompose/rules/families.h"
#include "core/decompose/support/series.h"

namespace ltc::decompose {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

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

Val entropy(Val x) { return where(is_nan(x), x, where(x > 0, -x * log(x), where(x == 0, zeros_like(x), full_like(x, -kInf)))); }

// Cody's rational functions, as Cephes has them: exp(x^2) erfc(x) from 1 to 8 and beyond.
constexpr double kErfcP[] = {2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687e0,
                             4.86371970985681366614e1,   1.96520832956077098242e2,  5.26445194995477358631e2,
                             9.34528527171957607540e2,   1.02755188689515710272e3,  5.57535335369399327526e2};
constexpr double kErfcQ[] = {1,
                             1.32281951154744992508e1,
                             8.67072140885989742329e1,
                             3.54937778887819891062e2,
                             9.75708501743205489753e2,
                             1.82390916687909736289e3,
                             2.24633760818710981792e3,
                             1.65666309194161350182e3,
                             5.57535340817727675546e2};
constexpr double kErfcR[] = {5.64189583547755073984e-1, 1.27536670759978104416e0, 5.01905042251180477414e0,
                             6.16021097993053585195e0,  7.40974269950448939160e0, 2.97886665372100240670e0};
constexpr double kErfcS[] = {1,
                             2.26052863220117276590e0,
                             9.39603524938001434673e0,
                             1.20489539808096656605e1,
                             1.70814450747565897222e1,
                             9.60896809063285878198e0,
                             3.36907645100081516050e0};

Val scaled_tail(Val a) {  // of a >= 1
  const Val near = minimum(a, 8), far = minimum(a, 1e5);
  const Val middle = polynomial(near, kErfcP) / polynomial(near, kErfcQ);
  const Val large = polynomial(far, kErfcR) / polynomial(far, kErfcS);
  return where(a < 8, middle, where(a < 1e5, large, std::numbers::inv_sqrtpi / a));
}
Val erfc(Val x) {
  const Val a = abs(x), tail = exp(-(a * a)) * scaled_tail(maximum(a, 1));
  return where(a < 1, 1 - erf(x), where(x < 0, 2 - tail, tail));
}
Val erfcx(Val x) { return where(x < 1, exp(x * x) * erfc(x), scaled_tail(maximum(x, 1))); }

Val log_ndtr(Val x) {
  const Val t = x * (1 / std::numbers::sqrt2);
  return where(x < -1, log(erfcx(-t) * 0.5) - t * t, log1p(erfc(t) * -0.5));
}

constexpr double kNdtriP0[] = {-5.99633501014107895267e1, 9.80010754185999661536e1, -5.66762857469070293439e1,
                               1.39312609387279679503e1, -1.23916583867381258016e0};
constexpr double kNdtriQ0[] = {1.00000000000000000000e0,  1.95448858338141759834e0,  4.67627912898881538453e0,
                               8.63602421390890590575e1,  -2.25462687854119370527e2, 2.00260212380060660359e2,
                               -8.20372256168333339912e1, 1.59056225126211695515e1,  -1.18331621121330003142e0};
constexpr double kNdtriP1[] = {4.05544892305962419923e0,   3.15251094599893866154e1,   5.71628192246421288162e1,
                               4.40805073893200834700e1,   1.46849561928858024014e1,   2.18663306850790267539e0,
                               -1.40256079171354495875e-1, -3.50424626827848203418e-2, -8.57456785154685413611e-4};
constexpr double kNdtriQ1[] = {1.00000000000000000000e0,   1.57799883256466749731e1,   4.53907635128879210584e1,
                               4.13172038254672030440e1,   1.50425385692907503408e1,   2.50464946208309415979e0,
                               -1.42182922854787788574e-1, -3.80806407691578277194e-2, -9.33259480895457427372e-4};
constexpr double kNdtriP2[] = {3.23774891776946035970e0,  6.91522889068984211695e0,  3.93881025292474443415e0,
                               1.33303460815807542389e0,  2.01485389549179081538e-1, 1.23716634817820021358e-2,
                               3.01581553508235416007e-4, 2.65806974686737550832e-6, 6.23974539184983293730e-9};
constexpr double kNdtriQ2[] = {1.00000000000000000000e0,  6.02427039364742014255e0,  3.67983563856160859403e0,
                               1.37702099489081330271e0,  2.16236993594496635890e-1, 1.34204006088543189037e-2,
                               3.28014464682127739104e-4, 2.89247864745380683936e-6, 6.79019408009981274425e-9};

// The inverse of the normal distribution's function: rational near the centre, in 1 / sqrt(-2 log y) towards 0.
Val ndtri(Val x) {
  constexpr double kEdge = 0.13533528323661269189;  // exp(-2)
  const Val upper = x > 1 - kEdge, y = where(upper, 1 - x, x), centred = y - 0.5, square = centred * centred;
  const Val centre = centred + centred * (square * polynomial(square, kNdtriP0) / polynomial(square, kNdtriQ0));
  const Val far = sqrt(log(minimum(y, kEdge)) * -2), z = 1 / far;
  const Val rest =
      where(far < 8, polynomial(z, kNdtriP1) / polynomial(z, kNdtriQ1), polynomial(z, kNdtriP2) / polynomial(z, kNdtriQ2));
  const Val tail = far - log(far) / far - z * rest;
  const Val inside = where(y > kEdge, centre * std::sqrt(2 * std::numbers::pi), where(upper, tail, -tail));
  const Val ends = where(x == 0, full_like(x, -kInf), where(x == 1, full_like(x, kInf), full_like(x, kNan)));
  return where((x > 0) & (x < 1), inside, ends);
}

// Hurwitz's zeta function: so many terms, and what is left by Euler and Maclaurin. Whole s and negative q: as long as these terms
// reach above 9; below, NaN.
Val zeta(Val s, Val q) {
  constexpr double kSeries[] = {12.0,
                                -720.0,
                                30240.0,
                                -1209600.0,
                                47900160.0,
                                -1.8924375803183791606e9,
                                7.47242496e10,
                                -2.950130727918164224e12,
                                1.1646782814350067249e14,
                                -4.5979787224074726105e15,
                                1.8152105401943546773e17,
                                -7.1661652561756670113e18};
  constexpr int kTerms = 9, kNegativeTerms = 16;
  Val total = zeros_like(s * q), base = q + total;
  for (int i = 0; i < kTerms + kNegativeTerms; ++i) {
    const Val more = i < kTerms ? base == base : base <= kTerms;
    total = where(more, total + pow(base, -s), total);
    base = where(more, base + 1, base);
  }
  const Val last = pow(base, -s);
  total = total + last * base / (s - 1) + last * 0.5;
  Val factor = s, power = last / base;
  for (int i = 0; i < 12; ++i) {
    total = total + factor * power / kSeries[i];
    factor = factor * (s + (2 * i + 1)) * (s + (2 * i + 2));
    power = power / (base * base);
  }
  const Val at_pole = (q <= 0) & (q == floor(q)), lost = (q <= 0) & ((s != floor(s)) | (q < -kNegativeTerms));
  const Val value = where(at_pole, full_like(total, kInf), where(lost, full_like(total, kNan), total));
  return where(s == 1, full_like(total, kInf), where(s < 1, full_like(total, kNan), where(is_nan(q), q, value)));
}
Results zeta_of_two(const Call& call) {
  const DType dtype = math_dtype(call.result().dtype);
  return zeta(cast(call.tensor("self"), dtype), cast(call.tensor("other"), dtype));
}

// The n-th derivative of cot(pi x), by pi^n: a polynomial of cot(pi x), coefficients from the lowest power up.
std::vector<double> cotangent_derivative(int64_t n) {
  std::vector<double> p = {0, 1};
  for (int64_t i = 0; i < n; ++i) {
    std::vector<double> next(p.size() + 1, 0);
    for (size_t k = 1; k < p.size(); ++k) {
      next[k - 1] -= static_cast<double>(k) * p[k];
      next[k + 1] -= static_cast<double>(k) * p[k];
    }
    p = std::move(next);
  }
  return p;
}

// By the zeta function, for x < 0.5 after reflection.
Results polygamma(const Call& call) {
  const Val x = cast(call.tensor("self"), math_dtype(call.result().dtype));
  const int64_t n = call.integer("n");
  if (n == 0) return digamma(x);
  const bool reflects = n < 16;  // beyond, factors overflow
  const Val low = reflects ? x < 0.5 : x != x, y = where(low, 1 - x, x);
  const double sign = n % 2 == 0 ? -1 : 1, factor = sign * std::tgamma(static_cast<double>(n) + 1);
  const Val positive = zeta(full_like(x, static_cast<double>(n + 1)), y) * factor;
  if (!reflects) return positive;
  // The cosine is 0 at halves. There its digits are those of the sine of what is left to a quarter turn.
  const Val turn = x - round(x), cotangent = sin((0.5 - abs(turn)) * std::numbers::pi) / sin(turn * std::numbers::pi);
  std::vector<double> series = cotangent_derivative(n);
  std::ranges::reverse(series);
  const Val bend = polynomial(cotangent, series) * std::pow(std::numbers::pi, static_cast<double>(n + 1));
  const Val pole = full_like(x, sign * kInf);
  return where(low, where(x == floor(x), pole, -bend - positive * sign), positive);
}

constexpr Decomposition kRules[] = {
    {"aten::digamma", real<digamma>},           {"aten::erfinv", real<erfinv>},       {"aten::polygamma", polygamma},
    {"aten::special_entr", real<entropy>},      {"aten::erfc", real<erfc>},           {"aten::special_erfcx", real<erfcx>},
    {"aten::special_log_ndtr", real<log_ndtr>}, {"aten::special_ndtri", real<ndtri>}, {"aten::special_zeta", zeta_of_two},
};

}  // namespace

std::span<const Decomposition> special_functions() { return kRules; }

}  // namespace ltc::decompose
