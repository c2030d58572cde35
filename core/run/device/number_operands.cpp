#include "core/run/device/number_operands.h"

#include <algorithm>
#include <cstring>

namespace ltc {
namespace {

// The number as a scalar of that dtype; empty where recording would never make one of it.
std::optional<Scalar> as_scalar(const NumberOperand& number, DType dtype) {
  if (dtype == DType::kF64) return Scalar{.f = number.is_int ? static_cast<double>(number.value.i) : number.value.f};
  if (dtype == DType::kI64 && number.is_int) return number.value;
  return std::nullopt;
}

bool equal(const Scalar& a, const Scalar& b, DType dtype) {
  return a.i == b.i && (dtype != DType::kC128 || std::memcmp(a.c, b.c, sizeof a.c) == 0);
}

bool is(const NumberOperand& number, const Scalar& scalar, DType dtype) {
  const auto as = as_scalar(number, dtype);
  return as && equal(*as, scalar, dtype);
}

bool is_drawn(const Captured& captured, uint32_t scalar) {
  return std::ranges::any_of(captured.rng_uses,
                             [scalar](const RngUse& use) { return use.seed == scalar || use.offset == scalar; });
}

}  // namespace

NumberOperands::NumberOperands(const Captured& captured, std::vector<NumberOperand> numbers, std::vector<bool> fixed)
    : constants_(captured.scalars), numbers_(std::move(numbers)), fixed_(std::move(fixed)), changed_(numbers_.size(), false) {
  for (const uint32_t scalar : captured.scalar_of) {
    if (is_drawn(captured, scalar)) continue;
    Use use{scalar, captured.scalar_dtypes[scalar], true, {}};
    for (uint32_t k = 0; k < numbers_.size(); ++k) {
      if (is(numbers_[k], constants_[use.scalar], use.dtype)) use.numbers.push_back(k);
    }
    uses_.push_back(std::move(use));
  }
  note_asked();
}

void NumberOperands::note_asked() {
  asked_.clear();
  for (uint32_t i = 0; i < uses_.size(); ++i) {
    if (!uses_[i].numbers.empty()) asked_.push_back(i);
  }
}

// A number is part of the kind of call until it has been seen to change nothing else.
bool NumberOperands::is_kind(const std::vector<NumberOperand>& numbers) const {
  if (numbers.size() != numbers_.size()) return false;
  for (size_t k = 0; k < numbers.size(); ++k) {
    if (numbers[k].is_int != numbers_[k].is_int || (!changed_[k] && numbers[k] != numbers_[k])) return false;
  }
  return true;
}

std::optional<NumberOperands> NumberOperands::merged(const NumberOperands& other) const {
  if (numbers_.size() != other.numbers_.size() || uses_.size() != other.uses_.size()) return std::nullopt;
  NumberOperands result(*this);
  for (size_t k = 0; k < numbers_.size(); ++k) {
    const bool differs = numbers_[k] != other.numbers_[k];
    result.fixed_[k] = fixed_[k] || other.fixed_[k];
    result.changed_[k] = changed_[k] || other.changed_[k] || differs;
    if (numbers_[k].is_int != other.numbers_[k].is_int || (result.fixed_[k] && result.changed_[k])) return std::nullopt;
  }
  for (size_t i = 0; i < uses_.size(); ++i) {
    Use& use = result.uses_[i];
    const Use& theirs = other.uses_[i];
    if (use.scalar != theirs.scalar || use.dtype != theirs.dtype) return std::nullopt;
    std::erase_if(use.numbers, [&](uint32_t k) { return std::ranges::find(theirs.numbers, k) == theirs.numbers.end(); });
    use.may_be_constant =
        use.may_be_constant && theirs.may_be_constant && equal(constants_[use.scalar], other.constants_[use.scalar], use.dtype);
    if (use.numbers.empty() && !use.may_be_constant) return std::nullopt;
  }
  result.note_asked();
  return result;
}

std::optional<std::vector<Scalar>> NumberOperands::scalars(const std::vector<NumberOperand>& numbers) const {
  if (!is_kind(numbers)) return std::nullopt;
  std::vector<Scalar> result = constants_;
  for (const uint32_t i : asked_) {
    const Use& use = uses_[i];
    Scalar& scalar = result[use.scalar];
    if (!use.may_be_constant) scalar = *as_scalar(numbers[use.numbers.front()], use.dtype);
    const auto agrees = [&](uint32_t k) { return is(numbers[k], scalar, use.dtype); };
    if (!std::ranges::all_of(use.numbers, agrees)) return std::nullopt;
  }
  return result;
}

}  // namespace ltc
