// Random ops as recipes over ltc::philox, so that every plugin draws the same numbers.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/native/DistributionTemplates.h>
#include <ATen/native/TensorFactories.h>
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

#include "core/run/device/capture.h"
#include "core/torch/tensor/generator.h"
#include "core/torch/tensor/geometry.h"

namespace ltc {
namespace {

using OptGenerator = std::optional<at::Generator>;

// Fresh random values of `dtype`: F32 and F64 uniform in [0, 1), I32 and I64 random bits.
at::Tensor draw(LazyDevice& device, c10::IntArrayRef sizes, c10::ScalarType dtype, const OptGenerator& given) {
  at::Generator generator = generator_for(given, device);
  const TypeId id = intern_contiguous(to_dtype(dtype), as_span(sizes));
  static const OpId philox = intern_op("ltc::philox");
  device.before_op(philox);  // without the generator's lock, as it may be a barrier
  std::lock_guard lock(generator.mutex());
  auto* lazy = static_cast<LazyGenerator*>(generator.unsafeGetGeneratorImpl());
  const auto seed = static_cast<int64_t>(lazy->current_seed());
  const auto offset = static_cast<int64_t>(lazy->reserve(type_of(id)));
  const at::Tensor result = new_tensor(device, type_of(id));
  const AttrsId attrs = intern_attrs({Attr::of_ints("size", sizes.vec()), Attr::of_dtype("dtype", to_dtype(dtype))});
  {
    Recorder recorder(device);
    const ValueId operands[] = {emit_number(recorder, to_number(seed)), emit_number(recorder, to_number(offset))};
    if (Capture* capture = current_capture()) capture->note_draw(id, std::make_shared<at::Generator>(generator));
    recorder.bind(lazy_storage(result.unsafeGetTensorImpl()), recorder.node(philox, id, attrs, operands), id);
  }
  device.end_op();
  return result;
}

// Uniform numbers in the precision that `like` computes in.
at::Tensor uniform01(const at::Tensor& like, const OptGenerator& generator) {
  const bool is_double = like.scalar_type() == at::kDouble || like.scalar_type() == at::kComplexDouble;
  return draw(lazy_device(like), like.sizes(), is_double ? at::kDouble : at::kFloat, generator);
}

// Numbers of [0, 1): multiples of a power of two that `like` holds exactly.
at::Tensor uniform_digits(const at::Tensor& like, const OptGenerator& generator) {
  const at::Tensor unit = uniform01(like, generator);
  const int digits = like.scalar_type() == at::kHalf ? 11 : like.scalar_type() == at::kBFloat16 ? 8 : 0;
  return digits ? unit.mul(1 << digits).floor().mul(1.0 / (1 << digits)) : unit;
}

// Numbers of (0, 1], for logarithms. Half a step away from 0, so that even numbers rounded to fewer digits have a finite
// logarithm.
at::Tensor uniform10(const at::Tensor& like, const OptGenerator& generator) {
  const at::Tensor unit = uniform01(like, generator);
  return unit.add(unit.scalar_type() == at::kDouble ? 0x1p-54 : 0x1p-25);
}

// Box and Muller's transform, the cosine half.
at::Tensor normal01(const at::Tensor& like, const OptGenerator& generator) {
  constexpr double kTwoPi = 6.283185307179586;
  const at::Tensor radius = uniform10(like, generator).log().mul(-2).sqrt();
  return uniform01(like, generator).mul(kTwoPi).cos().mul(radius);
}

// Throws the error of the CPU's kernel of that name for a dtype that it does not have.
void require(bool supported, c10::ScalarType dtype, const char* kernel) {
  TORCH_CHECK_NOT_IMPLEMENTED(supported, '"', kernel, "\" not implemented for '", toString(dtype), "'");
}
void require_floating(c10::ScalarType dtype, const char* kernel) { require(c10::isFloatingType(dtype), dtype, kernel); }
void require_real(c10::ScalarType dtype, const char* kernel) { require(!c10::isComplexType(dtype), dtype, kernel); }
void require_number(c10::ScalarType dtype, const char* kernel) {
  require(!c10::isComplexType(dtype) && dtype != at::kBool, dtype, kernel);
}

// ---- what PyTorch's templates call once they have checked the arguments; their parameter is the type of a generator

template <typename>
struct Uniform {
  void operator()(const at::TensorIterator& iter, double from, double to, const OptGenerator& generator) const {
    const at::Tensor& self = iter.output();
    const at::Tensor unit = uniform_digits(self, generator);
    if (from == 0 && to == 1) {
      self.copy_(unit);
    } else {  // rounding may reach the end, which is not in the range
      const at::Tensor value = unit.mul(to - from).add(from).to(self.scalar_type());
      self.copy_(at::where(value.eq(to), from, value));
    }
  }
};

template <typename>
struct Normal {
  void operator()(const at::Tensor& self, double mean, double std, const OptGenerator& generator) const {
    require_floating(self.scalar_type(), "normal_kernel_cpu");
    self.copy_(normal01(self, generator).mul(std).add(mean));
  }
};

template <typename>
struct LogNormal {
  void operator()(const at::TensorIterator& iter, double mean, double std, const OptGenerator& generator) const {
    require_floating(iter.dtype(), "log_normal_cpu");
    iter.output().copy_(normal01(iter.output(), generator).mul(std).add(mean).exp());
  }
};

template <typename>
struct Exponential {
  void operator()(const at::TensorIterator& iter, double lambda, const OptGenerator& generator) const {
    TORCH_CHECK(iter.output().is_floating_point(),
                "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you "
                "specified ",
                iter.dtype());
    constexpr double kLargestLogarithm = -0x1p-24;  // of 1 it is 0, which is no value of this distribution
    iter.output().copy_(uniform10(iter.output(), generator).log().clamp_max(kLargestLogarithm).div(-lambda));
  }
};

template <typename>
struct Cauchy {
  void operator()(const at::TensorIterator& iter, double median, double sigma, const OptGenerator& generator) const {
    constexpr double kPi = 3.141592653589793;
    iter.output().copy_(uniform01(iter.output(), generator).sub(0.5).mul(kPi).tan().mul(sigma).add(median));
  }
};

template <typename>
struct Geometric {
  void operator()(const at::TensorIterator& iter, double p, const OptGenerator& generator) const {
    require_number(iter.dtype(), "geometric_cpu");
    iter.output().copy_(uniform10(iter.output(), generator).log().div(std::log1p(-p)).ceil().clamp_min(1));
  }
};

// With one probability for all, or one each.
template <typename>
struct Bernoulli {
  void operator()(const at::Tensor& self, double p, const OptGenerator& generator) const {
    require_real(self.scalar_type(), "bernoulli_scalar_cpu_");
    self.copy_(uniform01(self, generator).lt(p));
  }
  void operator()(const at::Tensor& self, const at::Tensor& p, const OptGenerator& generator) const {
    require_real(self.scalar_type(), "bernoulli_tensor_cpu_self_");
    require_floating(p.scalar_type(), "bernoulli_tensor_cpu_p_");
    self.copy_(uniform01(self, generator).lt(p));
  }
};

// The remainder's bias is below 2^-31 for ranges below 2^32. Bits and ranges are unsigned and held in int64.
template <typename>
struct RandomFromTo {
  void operator()(const at::TensorIterator& iter, uint64_t range, int64_t from, const OptGenerator& generator) const {
    const at::Tensor bits = draw_bits(iter, generator);
    const auto wrapped = static_cast<int64_t>(range);
    if (range == 0) {  // all 2^64
      iter.output().copy_(bits.add(from));
    } else if (wrapped > 0) {  // int64's remainder takes the sign of the range: never negative
      iter.output().copy_(bits.remainder(wrapped).add(from));
    } else {  // the remainder is the number or, from the range up, the difference
      iter.output().copy_(at::where(bits.ge(0).logical_or(bits.lt(wrapped)), bits, bits.sub(wrapped)).add(from));
    }
  }
  void operator()(const at::TensorIterator& iter, const OptGenerator& generator) const {
    iter.output().copy_(draw_bits(iter, generator));
  }

 private:
  static at::Tensor draw_bits(const at::TensorIterator& iter, const OptGenerator& generator) {
    return draw(lazy_device(iter.output()), iter.output().sizes(), at::kLong, generator);
  }
};

// As PyTorch: up to the largest integer that the dtype holds exactly.
template <typename>
struct Random {
  void operator()(const at::TensorIterator& iter, const OptGenerator& generator) const {
    require_real(iter.dtype(), "random_kernel_cpu");
    RandomFromTo<void>()(iter, end(iter.dtype()), 0, generator);
  }

 private:
  static uint64_t end(c10::ScalarType dtype) {
    switch (dtype) {
      case at::kBool: return 2;
      case at::kByte: return 256;
      case at::kChar: return 128;
      case at::kShort: return 1 << 15;
      case at::kUInt16: return 1 << 16;
      case at::kInt: return uint64_t{1} << 31;
      case at::kUInt32: return uint64_t{1} << 32;
      case at::kHalf: return (1 << 11) + 1;
      case at::kBFloat16: return (1 << 8) + 1;
      case at::kFloat: return (1 << 24) + 1;
      case at::kDouble: return (uint64_t{1} << 53) + 1;
      case at::kUInt64: return 0;
      default: return uint64_t{1} << 63;
    }
  }
};

// ---- the ops

namespace checked = at::native::templates;
using Rng = LazyGenerator;

at::Tensor& uniform_(at::Tensor& self, double from, double to, OptGenerator generator) {
  return checked::uniform_impl_<Uniform, Rng>(self, from, to, std::move(generator));
}
at::Tensor& normal_(at::Tensor& self, double mean, double std, OptGenerator generator) {
  return checked::normal_impl_<Normal, Rng>(self, mean, std, std::move(generator));
}
at::Tensor& log_normal_(at::Tensor& self, double mean, double std, OptGenerator generator) {
  return checked::log_normal_impl_<LogNormal, Rng>(self, mean, std, std::move(generator));
}
at::Tensor& exponential_(at::Tensor& self, double lambda, OptGenerator generator) {
  return checked::exponential_impl_<Exponential, Rng>(self, lambda, std::move(generator));
}
at::Tensor& cauchy_(at::Tensor& self, double median, double sigma, OptGenerator generator) {
  return checked::cauchy_impl_<Cauchy, Rng>(self, median, sigma, std::move(generator));
}
at::Tensor& geometric_(at::Tensor& self, double p, OptGenerator generator) {
  return checked::geometric_impl_<Geometric, Rng>(self, p, std::move(generator));
}
at::Tensor& bernoulli_number_(at::Tensor& self, double p, OptGenerator generator) {
  return checked::bernoulli_impl_<Bernoulli, Rng>(self, p, std::move(generator));
}
at::Tensor& bernoulli_tensor_(at::Tensor& self, const at::Tensor& p, OptGenerator generator) {
  return checked::bernoulli_impl_<Bernoulli, Rng>(self, p, std::move(generator));
}
at::Tensor bernoulli_number(const at::Tensor& self, double p, OptGenerator generator) {
  at::Tensor result = at::empty_like(self);
  return bernoulli_number_(result, p, std::move(generator));
}
at::Tensor& bernoulli_out(const at::Tensor& p, OptGenerator generator, at::Tensor& out) {
  return checked::bernoulli_out_impl<Bernoulli, Rng>(out, p, std::move(generator));
}
at::Tensor& random_(at::Tensor& self, OptGenerator generator) {
  return checked::random_impl<Random, Rng>(self, std::move(generator));
}
at::Tensor& random_from_(at::Tensor& self, int64_t from, std::optional<int64_t> to, OptGenerator generator) {
  return checked::random_from_to_impl<RandomFromTo, Rng>(self, from, to, std::move(generator));
}
at::Tensor& random_to_(at::Tensor& self, int64_t to, OptGenerator generator) {
  return random_from_(self, 0, to, std::move(generator));
}

std::tuple<at::Tensor, at::Tensor> native_dropout(const at::Tensor& input, double p, std::optional<bool> train) {
  if (input.numel() == 0) return {input.clone(), at::empty_like(input)};  // the CPU's mask is no mask then
  if (p == 0 || (train && !*train)) {
    return {input.clone(), at::ones_like(input, input.options().dtype(at::kBool))};
  }
  if (p == 1) return {input.mul(0), at::zeros_like(input, input.options().dtype(at::kBool))};
  at::Tensor mask = at::empty_like(input, input.options().dtype(at::kBool)).copy_(uniform01(input, {}).lt(1 - p));
  at::Tensor output = input.mul(mask).mul_(1 / (1 - p));
  return {std::move(output), std::move(mask)};
}

at::Tensor& randperm_out(c10::SymInt n, OptGenerator generator, at::Tensor& out) {
  const int64_t count = n.expect_int();
  TORCH_CHECK(count >= 0, "n must be non-negative, got ", count);
  require_number(out.scalar_type(), "randperm");
  at::native::check_supported_max_int_with_precision(count, at::empty({0}, out.options().device(at::kCPU)));
  const int64_t sizes[] = {count};
  out.resize_(sizes);
  return out.copy_(at::argsort(draw(lazy_device(out), sizes, at::kLong, generator), /*stable=*/true));
}

// normal(mean, std) in its three forms with tensors.
template <typename Mean, typename Std>
at::Tensor normal(Mean mean, Std std, OptGenerator generator) {
  return checked::normal_impl<Normal, Rng>(mean, std, std::move(generator));
}
template <typename Mean, typename Std>
at::Tensor& normal_out(Mean mean, Std std, OptGenerator generator, at::Tensor& out) {
  return checked::normal_out_impl<Normal, Rng>(out, mean, std, std::move(generator));
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

// As the CPU: weights are read once, whatever the draw.
void check_weights(const at::Tensor& weights) {
  constexpr int64_t kMostCategories = 1 << 24;
  TORCH_CHECK(weights.size(-1) <= kMostCategories, "number of categories cannot exceed 2^24");
  const at::Tensor unsound = weights.lt(0).logical_or(weights.isfinite().logical_not()).any();
  const at::Tensor faults = at::stack({unsound, weights.sum(-1).le(0).any()}).cpu();  // one read for both
  TORCH_CHECK(!faults[0].item<bool>(), "probability tensor contains either `inf`, `nan` or element < 0");
  TORCH_CHECK(!faults[1].item<bool>(), "invalid multinomial distribution (sum of probabilities <= 0)");
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
  check_weights(weights);
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
  m.impl("bernoulli.p", bernoulli_number);
  m.impl("bernoulli.out", bernoulli_out);
  m.impl("native_dropout", native_dropout);
  m.impl("random_.from", random_from_);
  m.impl("random_.to", random_to_);
  m.impl("random_", random_);
  m.impl("randperm.generator_out", randperm_out);
  m.impl("normal.Tensor_float", normal<const at::Tensor&, double>);
  m.impl("normal.float_Tensor", normal<double, const at::Tensor&>);
  m.impl("normal.Tensor_Tensor", normal<const at::Tensor&, const at::Tensor&>);
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
