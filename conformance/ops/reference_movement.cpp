// Movement: each element of the output comes from one place.
#include <algorithm>

#include "conformance/ops/reference_call.h"

namespace ltc::conformance {
namespace {

void same_bytes(const ReferenceCall& call) { call.copy_bytes(); }

void permute(const ReferenceCall& call) {
  const Sizes dims = call.ints("dims");
  const Sizes from = strides_of(call.input(0).sizes);
  call.gather_from(0, [&](const Sizes& at) {
    int64_t offset = 0;
    for (size_t d = 0; d < at.size(); ++d) offset += at[d] * from[static_cast<size_t>(dims[d])];
    return offset;
  });
}

void expand(const ReferenceCall& call) {
  const Broadcast x(call.input(0).sizes, call.output(0).sizes);
  for (int64_t i = 0; i < call.output(0).count(); ++i) copy_element(call.input(0), x.at(i), call.output(0), i);
}

void slice(const ReferenceCall& call) {
  const auto dim = static_cast<size_t>(call.integer("dim", 0));
  const Sizes from = strides_of(call.input(0).sizes);
  call.gather_from(0, [&](Sizes at) {
    at[dim] = call.integer("start", 0) + at[dim] * call.integer("step", 1);
    return dot(at, from);
  });
}

void pad(const ReferenceCall& call) {
  const Array& x = call.input(0);
  Array& out = call.output(0);
  const Sizes amounts = call.ints("pad");
  const Sizes from = strides_of(x.sizes);
  for (int64_t i = 0; i < out.count(); ++i) {
    Sizes at = position(i, out.sizes);
    bool inside = true;
    for (size_t back = 0; back * 2 < amounts.size(); ++back) {
      const size_t d = at.size() - 1 - back;
      at[d] -= amounts[back * 2];
      inside = inside && at[d] >= 0 && at[d] < x.sizes[d];
    }
    if (inside) {
      copy_element(x, dot(at, from), out, i);
    } else {
      call.store_number(out, i, "value", 1);
    }
  }
}

void cat(const ReferenceCall& call) {
  const auto dim = static_cast<size_t>(call.integer("dim", 0));
  Array& out = call.output(0);
  for (int64_t i = 0; i < out.count(); ++i) {
    Sizes at = position(i, out.sizes);
    size_t part = 0;
    while (at[dim] >= call.input(part).sizes[dim]) at[dim] -= call.input(part++).sizes[dim];
    copy_element(call.input(part), dot(at, strides_of(call.input(part).sizes)), out, i);
  }
}

void flip(const ReferenceCall& call) {
  const Array& x = call.input(0);
  const Sizes dims = call.ints("dims");
  call.gather_from(0, [&](Sizes at) {
    for (const int64_t dim : dims)
      at[static_cast<size_t>(dim)] = x.sizes[static_cast<size_t>(dim)] - 1 - at[static_cast<size_t>(dim)];
    return dot(at, strides_of(x.sizes));
  });
}

void arange(const ReferenceCall& call) {
  Array& out = call.output(0);
  for (int64_t i = 0; i < out.count(); ++i)
    out.set_real(i, call.real("start", 0) + static_cast<double>(i) * call.real("step", 1));
}

void full(const ReferenceCall& call) {
  for (int64_t i = 0; i < call.output(0).count(); ++i) call.store_number(call.output(0), i, "fill_value", 0);
}

int64_t strided_offset(const ReferenceCall& call, const Sizes& at) {
  return call.integer("storage_offset", 0) + dot(at, call.ints("stride"));
}

void as_strided(const ReferenceCall& call) {
  call.gather_from(0, [&](const Sizes& at) { return strided_offset(call, at); });
}

void as_strided_scatter(const ReferenceCall& call) {
  call.copy_bytes();
  const Array& src = call.input(1);
  for (int64_t i = 0; i < src.count(); ++i) copy_element(src, i, call.output(0), strided_offset(call, position(i, src.sizes)));
}

constexpr Reference kReferences[] = {
    {"aten::view.dtype", same_bytes},
    {"aten::reshape", same_bytes},
    {"aten::permute", permute},
    {"aten::expand", expand},
    {"aten::slice.Tensor", slice},
    {"aten::constant_pad_nd", pad},
    {"aten::cat", cat},
    {"aten::flip", flip},
    {"aten::arange.start_step", arange},
    {"aten::full", full},
    {"aten::as_strided", as_strided},
    {"aten::as_strided_scatter", as_strided_scatter},
};

}  // namespace

std::span<const Reference> movement_references() { return kReferences; }

}  // namespace ltc::conformance
