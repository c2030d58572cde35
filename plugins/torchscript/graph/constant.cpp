#include "torchscript/graph/constant.h"

#include <ATen/core/List.h>
#include <c10/util/StringUtil.h>

#include "torchscript/graph/errors.h"

namespace ltc::torchscript {

void archive(plugin::Archive& io, Constant& constant) { io(constant.kind, constant.ints, constant.doubles, constant.string); }

Constant::Constant(const c10::IValue& value, c10::Device device) {
  if (value.isNone()) {
    kind = Kind::kNone;
  } else if (value.isInt()) {
    kind = Kind::kInt, ints = {value.toInt()};
  } else if (value.isDouble()) {
    kind = Kind::kDouble, doubles = {value.toDouble()};
  } else if (value.isBool()) {
    kind = Kind::kBool, ints = {value.toBool()};
  } else if (value.isComplexDouble()) {
    kind = Kind::kComplex, doubles = {value.toComplexDouble().real(), value.toComplexDouble().imag()};
  } else if (value.isIntList()) {
    kind = Kind::kInts, ints = value.toIntVector();
  } else if (value.isDoubleList()) {
    kind = Kind::kDoubles, doubles = value.toDoubleVector();
  } else if (value.isBoolList()) {
    kind = Kind::kBools;
    for (const bool element : value.toBoolList()) ints.push_back(element);
  } else if (value.isString()) {
    kind = Kind::kString, string = value.toStringRef();
  } else if (value.isDevice() && value.toDevice() == device) {
    kind = Kind::kDevice;
  } else {
    throw Failure(LTC_UNSUPPORTED, c10::str("[save] a constant of type ", value.tagKind()));
  }
}

c10::IValue Constant::value(c10::Device device) const {
  const auto only = [](const auto& list) {
    if (list.size() != 1) plugin::Archive::refuse();
    return list[0];
  };
  switch (kind) {
    case Kind::kNone: return {};
    case Kind::kInt: return only(ints);
    case Kind::kDouble: return only(doubles);
    case Kind::kBool: return only(ints) != 0;
    case Kind::kComplex:
      if (doubles.size() != 2) break;
      return c10::complex<double>(doubles[0], doubles[1]);
    case Kind::kInts: return ints;
    case Kind::kDoubles: return doubles;
    case Kind::kString: return string;
    case Kind::kDevice: return device;
    case Kind::kBools: {
      c10::List<bool> list;
      for (const int64_t element : ints) list.push_back(element != 0);
      return list;
    }
  }
  plugin::Archive::refuse();
}

}  // namespace ltc::torchscript
