// Random ops as recipes over ltc::philox, so that every plugin draws the same numbers.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/view_as_real.h>
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
  {
    Recorder recorder(device);
    const ValueId operands[] = {emit_number(recorder, seed), emit_number(recorder, offset)};
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
  return self.copy_(uniform01(self, generator).mul(to - from).add(from));
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
  return self.copy_(uniform10(self, generator).log().div(-lambda));
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

// [from, to), or all of the dtype's values. The remainder's bias is below 2^-31 for ranges below 2^32.
at::Tensor& random_between(at::Tensor& self, int64_t from, std::optional<int64_t> to, const OptGenerator& generator) {
  TORCH_CHECK(!to || from < *to, "random_ expects 'from' to be less than 'to', but got from=", from, " >= to=", to.value_or(0));
  const at::Tensor bits = draw(lazy_device(self), self.sizes(), at::kLong, generator);
  if (!to) return self.copy_(bits);
  const auto range = static_cast<int64_t>(static_cast<uint64_t>(*to) - static_cast<uint64_t>(from));
  return self.copy_(bits.remainder(range).add(from));  // remainder takes the sign of the range: never negative
}

at::Tensor& random_from_(at::Tensor& self, int64_t from, std::optional<int64_t> to, OptGenerator generator) {
  return random_between(self, from, to, generator);
}
at::Tensor& random_to_(at::Tensor& self, int64_t to, OptGenerator generator) { return random_between(self, 0, to, generator); }

// As PyTorch: up to the largest integer that the dtype holds exactly.
at::Tensor& random_(at::Tensor& self, OptGenerator generator) {
  int64_t end = 0;
  switch (self.scalar_type()) {
    case at::kBool: end = 2; break;
    case at::kByte: end = 256; break;
    case at::kChar: end = 128; break;
    case at::kShort: end = 1 << 15; break;
    case at::kInt: end = int64_t{1} << 31; break;
    case at::kHalf: end = (1 << 11) + 1; break;
    case at::kBFloat16: end = (1 << 8) + 1; break;
    case at::kFloat: end = (1 << 24) + 1; break;
    case at::kDouble: end = (int64_t{1} << 53) + 1; break;
    default: end = INT64_MAX;
  }
  return random_between(self, 0, end, generator);
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
  m.impl("random_.from", random_from_);
  m.impl("random_.to", random_to_);
  m.impl("random_", random_);
  m.impl("randperm.generator_out", randperm_out);
  m.impl("normal.Tensor_float", normal_tensor_number);
  m.impl("normal.float_Tensor", normal_number_tensor);
  m.impl("normal.Tensor_Tensor", normal_tensor_tensor);
}

}  // namespace
}  // namespace ltc
