// Random ops as recipes over ltc::philox, so that every plugin draws the same numbers.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/native/DistributionTemplates.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/normal.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

#include "core/torch/generator.h"
#include "core/torch/geometry.h"

namespace ltc {
namespace {

using OptGenerator = std::optional<at::Generator>;

// Fresh random values of `dtype`: F32 and F64 uniform in [0, 1), I32 and I64 random bits.
at::Tensor draw(LazyDevice& device, c10::IntArrayRef sizes, c10::ScalarType dtype, const OptGenerator& given) {
  at::Generator generator = generator_for(given, device);
  const TypeId id = intern_contiguous(to_dtype(dtype), as_span(sizes));
  std::lock_guard lock(generator.mutex());
  auto* lazy = static_cast<LazyGenerator*>(generator.unsafeGetGeneratorImpl());
  const auto seed = static_cast<int64_t>(lazy->current_seed());
  const auto offset = static_cast<int64_t>(lazy->reserve(type_of(id)));
  const at::Tensor result = new_tensor(device, type_of(id));
  static const OpId philox = intern_op("ltc::philox");
  const AttrsId attrs = intern_attrs({Attr::of_ints("size", sizes.vec()), Attr::of_dtype("dtype", to_dtype(dtype))});
  Recorder recorder(device);
  const ValueId operands[] = {emit_number(recorder, seed), emit_number(recorder, offset)};
  recorder.bind(lazy_storage(result.unsafeGetTensorImpl()), recorder.node(philox, id, attrs, operands), id);
  return result;
}

// Uniform numbers in the precision that `like` computes in.
at::Tensor uniform01(const at::Tensor& like, const OptGenerator& generator) {
  const bool is_double = like.scalar_type() == at::kDouble || like.scalar_type() == at::kComplexDouble;
  return draw(lazy_device(like), like.sizes(), is_double ? at::kDouble : at::kFloat, generator);
}

// Of [0, 1), multiples of a power of two that `like` holds exactly.
at::Tensor uniform_digits(const at::Tensor& like, const OptGenerator& generator) {
  const at::Tensor unit = uniform01(like, generator);
  const int digits = like.scalar_type() == at::kHalf ? 11 : like.scalar_type() == at::kBFloat16 ? 8 : 0;
  return digits ? unit.mul(1 << digits).floor().mul(1.0 / (1 << digits)) : unit;
}

// Of (0, 1]: for logarithms.
at::Tensor uniform10(const at::Tensor& like, const OptGenerator& generator) { return uniform01(like, generator).neg().add(1); }

// Box and Muller's transform, the cosine half.
at::Tensor normal01(const at::Tensor& like, const OptGenerator& generator) {
  constexpr double kTwoPi = 6.283185307179586;
  const at::Tensor radius = uniform10(like, generator).log().mul(-2).sqrt();
  return uniform01(like, generator).mul(kTwoPi).cos().mul(radius);
}

at::Tensor& uniform_(at::Tensor& self, double from, double to, OptGenerator generator) {
  TORCH_CHECK(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from, " > to=", to);
  const at::Tensor unit = uniform_digits(self, generator);
  if (from == 0 && to == 1) return self.copy_(unit);
  const at::Tensor value = unit.mul(to - from).add(from).to(self.scalar_type());
  return self.copy_(at::where(value.eq(to), from, value));  // rounding may have reached the end, which is not in the range
}

at::Tensor& normal_(at::Tensor& self, double mean, double std, OptGenerator generator) {
  TORCH_CHECK(std >= 0.0, "normal expects std >= 0.0, but found std ", std);
  if (!self.is_complex()) return self.copy_(normal01(self, generator).mul(std).add(mean));
  at::Tensor parts = at::view_as_real(self);  // each part has half of the variance
  parts.copy_(normal01(parts, generator).mul(std * 0.7071067811865476));
  return self.add_(mean);
}

at::Tensor& log_normal_(at::Tensor& self, double mean, double std, OptGenerator generator) {
  TORCH_CHECK(std > 0.0, "log_normal_ expects std > 0.0, but found std=", std);
  return self.copy_(normal01(self, generator).mul(std).add(mean).exp());
}

at::Tensor& exponential_(at::Tensor& self, double lambda, OptGenerator generator) {
  TORCH_CHECK(lambda > 0.0, "exponential_ expects lambda > 0.0, but found lambda=", lambda);
  constexpr double kLargestLogarithm = -0x1p-24;  // of 1 it is 0, which is no value of this distribution
  return self.copy_(uniform10(self, generator).log().clamp_max(kLargestLogarithm).div(-lambda));
}

at::Tensor& cauchy_(at::Tensor& self, double median, double sigma, OptGenerator generator) {
  TORCH_CHECK(sigma > 0.0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
  constexpr double kPi = 3.141592653589793;
  return self.copy_(uniform01(self, generator).sub(0.5).mul(kPi).tan().mul(sigma).add(median));
}

at::Tensor& geometric_(at::Tensor& self, double p, OptGenerator generator) {
  TORCH_CHECK(0 < p && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
  return self.copy_(uniform10(self, generator).log().div(std::log1p(-p)).ceil().clamp_min(1));
}

at::Tensor& bernoulli_number_(at::Tensor& self, double p, OptGenerator generator) {
  TORCH_CHECK(0 <= p && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  return self.copy_(uniform01(self, generator).lt(p));
}

at::Tensor& bernoulli_tensor_(at::Tensor& self, const at::Tensor& p, OptGenerator generator) {
  return self.copy_(uniform01(self, generator).lt(p));
}

at::Tensor& bernoulli_out(const at::Tensor& p, OptGenerator generator, at::Tensor& out) {
  out.resize_(p.sizes());
  return bernoulli_tensor_(out, p, std::move(generator));
}

std::tuple<at::Tensor, at::Tensor> native_dropout(const at::Tensor& input, double p, std::optional<bool> train) {
  if (p == 0 || input.numel() == 0 || (train && !*train)) {
    return {input.clone(), at::ones_like(input, input.options().dtype(at::kBool))};
  }
  if (p == 1) return {input.mul(0), at::zeros_like(input, input.options().dtype(at::kBool))};
  at::Tensor mask = uniform01(input, {}).lt(1 - p);
  at::Tensor output = input.mul(mask).mul_(1 / (1 - p));
  return {std::move(output), std::move(mask)};
}

// What PyTorch's templates of random_ call once they have checked the range and fitted it to the dtype.
template <typename>
struct RandomFromTo {
  // The remainder's bias is below 2^-31 for ranges below 2^32. Bits and ranges are unsigned and held in int64.
  void operator()(at::TensorIterator& iter, uint64_t range, int64_t from, const OptGenerator& generator) const {
    const at::Tensor bits = draw_bits(iter, generator);
    const auto wrapped = static_cast<int64_t>(range);
    if (range != 0 && wrapped < 0) {  // the remainder is the number or, from the range up, the difference
      iter.output().copy_(at::where(bits.ge(0).logical_or(bits.lt(wrapped)), bits, bits.sub(wrapped)).add(from));
    } else {  // int64's remainder takes the sign of the range: never negative
      iter.output().copy_(range == 0 ? bits : bits.remainder(wrapped).add(from));
    }
  }
  void operator()(at::TensorIterator& iter, const OptGenerator& generator) const {
    iter.output().copy_(draw_bits(iter, generator));
  }

 private:
  static at::Tensor draw_bits(at::TensorIterator& iter, const OptGenerator& generator) {
    return draw(lazy_device(iter.output()), iter.output().sizes(), at::kLong, generator);
  }
};

at::Tensor& random_between(at::Tensor& self, int64_t from, std::optional<int64_t> to, OptGenerator generator) {
  return at::native::templates::random_from_to_impl<RandomFromTo, LazyGenerator>(self, from, to, std::move(generator));
}
at::Tensor& random_to_(at::Tensor& self, int64_t to, OptGenerator generator) {
  return random_between(self, 0, to, std::move(generator));
}

// As PyTorch: up to the largest integer that the dtype holds exactly.
at::Tensor& random_(at::Tensor& self, OptGenerator generator) {
  int64_t digits = 63;
  switch (self.scalar_type()) {
    case at::kHalf: digits = 11; break;
    case at::kBFloat16: digits = 8; break;
    case at::kFloat: digits = 24; break;
    case at::kDouble: digits = 53; break;
    default: return random_between(self, 0, std::nullopt, std::move(generator));
  }
  return self.copy_(draw(lazy_device(self), self.sizes(), at::kLong, generator).remainder((int64_t{1} << digits) + 1));
}

at::Tensor& randperm_out(c10::SymInt n, OptGenerator generator, at::Tensor& out) {
  const int64_t count = n.expect_int();
  TORCH_CHECK(count >= 0, "n must be non-negative, got ", count);
  const int64_t sizes[] = {count};
  out.resize_(sizes);
  return out.copy_(at::argsort(draw(lazy_device(out), sizes, at::kLong, generator), /*stable=*/true));
}

// normal(mean, std) in its three forms with tensors.
at::Tensor normal_around(const at::Tensor& like, const OptGenerator& generator) {
  return normal01(like, generator).to(like.scalar_type());
}
at::Tensor normal_tensor_number(const at::Tensor& mean, double std, OptGenerator generator) {
  return normal_around(mean, generator).mul(std).add(mean);
}
at::Tensor normal_number_tensor(double mean, const at::Tensor& std, OptGenerator generator) {
  return normal_around(std, generator).mul(std).add(mean);
}
at::Tensor normal_tensor_tensor(const at::Tensor& mean, const at::Tensor& std, OptGenerator generator) {
  return normal_around(mean.add(std), generator).mul(std).add(mean);
}

at::Tensor normal_numbers(double mean, double std, c10::SymIntArrayRef sizes, OptGenerator generator,
                          std::optional<c10::ScalarType> dtype, std::optional<c10::Layout> layout,
                          std::optional<c10::Device> device, std::optional<bool> pin) {
  at::Tensor result = at::empty_symint(sizes, dtype, layout, device, pin, std::nullopt);
  return normal_(result, mean, std, std::move(generator));
}

at::Tensor& normal_numbers_out(double mean, double std, c10::SymIntArrayRef sizes, OptGenerator generator, at::Tensor& out) {
  out.resize__symint(sizes);
  return normal_(out, mean, std, std::move(generator));
}

template <typename Mean, typename Std>
at::Tensor& normal_out(Mean mean, Std std, OptGenerator generator, at::Tensor& out) {
  const at::Tensor drawn = at::normal(mean, std, std::move(generator));
  out.resize_(drawn.sizes());
  return out.copy_(drawn);
}

// Without replacement: the categories that finish first when each waits for a time with its own rate. With it: where uniform
// numbers fall in the running sum.
at::Tensor multinomial(const at::Tensor& weights, c10::SymInt symbolic, bool replacement, OptGenerator generator) {
  const int64_t count = symbolic.expect_int();
  TORCH_CHECK(weights.dim() == 1 || weights.dim() == 2, "prob_dist must be 1 or 2 dim");
  TORCH_CHECK(weights.is_floating_point(),
              "multinomial only supports floating-point dtypes for input, got: ", weights.scalar_type());
  TORCH_CHECK(count > 0, "cannot sample n_sample <= 0 samples");
  TORCH_CHECK(replacement || count <= weights.size(-1),
              "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  if (!replacement || count == 1) {
    const at::Tensor times = uniform10(weights, generator).log().neg().div(weights);
    return std::get<1>(times.topk(count, -1, /*largest=*/false));
  }
  const at::Tensor sums = weights.to(weights.scalar_type() == at::kDouble ? at::kDouble : at::kFloat).cumsum(-1);
  at::DimVector sizes(weights.sizes());
  sizes.back() = count;
  const at::Tensor uniform = draw(lazy_device(weights), sizes, sums.scalar_type(), generator);
  const at::Tensor total = sums.narrow(-1, weights.size(-1) - 1, 1);
  return at::searchsorted(sums, uniform.mul(total), /*out_int32=*/false, /*right=*/true).clamp_max(weights.size(-1) - 1);
}

at::Tensor& multinomial_out(const at::Tensor& weights, c10::SymInt count, bool replacement, OptGenerator generator,
                            at::Tensor& out) {
  TORCH_CHECK(out.scalar_type() == at::kLong, "multinomial expects Long tensor out, got: ", out.scalar_type());
  const at::Tensor drawn = multinomial(weights, std::move(count), replacement, std::move(generator));
  out.resize_(drawn.sizes());
  return out.copy_(drawn);
}

// `noise` becomes the slopes, one where the input is positive.
at::Tensor rrelu_with_noise(const at::Tensor& self, at::Tensor& noise, const at::Scalar& lower, const at::Scalar& upper,
                            bool training, OptGenerator generator) {
  if (!training) return at::leaky_relu(self, (lower.toDouble() + upper.toDouble()) / 2);
  const at::Tensor slopes = uniform01(self, generator).mul(upper.toDouble() - lower.toDouble()).add(lower);
  noise.copy_(at::where(self.le(0), slopes, 1));
  return self.mul(noise);
}
at::Tensor& rrelu_with_noise_(at::Tensor& self, at::Tensor& noise, const at::Scalar& lower, const at::Scalar& upper,
                              bool training, OptGenerator generator) {
  return self.copy_(ltc::rrelu_with_noise(self, noise, lower, upper, training, std::move(generator)));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("uniform_", uniform_);
  m.impl("normal_", normal_);
  m.impl("log_normal_", log_normal_);
  m.impl("exponential_", exponential_);
  m.impl("cauchy_", cauchy_);
  m.impl("geometric_", geometric_);
  m.impl("bernoulli_.float", bernoulli_number_);
  m.impl("bernoulli_.Tensor", bernoulli_tensor_);
  m.impl("bernoulli.out", bernoulli_out);
  m.impl("native_dropout", native_dropout);
  m.impl("random_.from", random_between);
  m.impl("random_.to", random_to_);
  m.impl("random_", random_);
  m.impl("randperm.generator_out", randperm_out);
  m.impl("normal.Tensor_float", normal_tensor_number);
  m.impl("normal.float_Tensor", normal_number_tensor);
  m.impl("normal.Tensor_Tensor", normal_tensor_tensor);
  m.impl("normal.float_float", normal_numbers);
  m.impl("normal.float_float_out", normal_numbers_out);
  m.impl("normal.Tensor_float_out", normal_out<const at::Tensor&, double>);
  m.impl("normal.float_Tensor_out", normal_out<double, const at::Tensor&>);
  m.impl("normal.Tensor_Tensor_out", normal_out<const at::Tensor&, const at::Tensor&>);
  m.impl("multinomial", multinomial);
  m.impl("multinomial.out", multinomial_out);
  m.impl("rrelu_with_noise", rrelu_with_noise);
  m.impl("rrelu_with_noise_", rrelu_with_noise_);
}

}  // namespace
}  // namespace ltc
