// The tiers ops and programs: runs graphs on the plugin and compares each result with the reference.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "conformance/kit/fixture.h"
#include "conformance/ops/cases.h"
#include "conformance/ops/reference.h"
#include "conformance/ops/register.h"
#include "core/compile/lowering/abi_graph.h"
#include "core/decompose/decompose.h"
#include "core/ir/text.h"

namespace ltc::conformance {
namespace {

// ---- inputs

std::vector<double> special_floats(DType dtype) {
  const bool wide = dtype == DType::kF64;
  const double largest = wide ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
  const double smallest = wide ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
  // The last four lie halfway between two numbers of 8 and of 11 bits.
  return {0.0, -0.0, 1,   -1,  NAN,  INFINITY, -INFINITY,  largest,    -largest,    smallest,   -smallest,
          0.5, -0.5, 1.5, 2.5, -2.5, 1e-3,     1 + 0x1p-8, 1 + 0x3p-8, 1 + 0x1p-11, 1 + 0x3p-11};
}

double real_value(Fill fill, int64_t i, DType dtype, std::mt19937& random) {
  const double unit = std::uniform_real_distribution<double>(-1, 1)(random);
  const auto n = static_cast<size_t>(i);
  switch (fill) {
    case Fill::kAny: {
      const auto special = special_floats(dtype);
      return n < special.size() ? special[n] : unit * 100;
    }
    case Fill::kFinite: {
      constexpr double kFirst[] = {0.0, -0.0, 1, -1, 0.5, -20, 20, 1e-4};
      return n < std::size(kFirst) ? kFirst[n] : unit * 10;
    }
    case Fill::kPositive: return n == 0 ? 1 : n == 1 ? 2 : n == 2 ? 0.25 : (unit + 1.001) * 5;
    case Fill::kUnit: return unit;
    case Fill::kSmall: return static_cast<double>((i * 5 + 3) % 9 - 4);
    case Fill::kCount: return static_cast<double>(i % 8);
    case Fill::kNonZero: return i % 2 ? -static_cast<double>(i % 3 + 1) : static_cast<double>(i % 3 + 1);
  }
  return 0;
}

int64_t integer_value(Fill fill, int64_t i, DType dtype, std::mt19937& random) {
  switch (fill) {
    case Fill::kAny: {
      const int width = static_cast<int>(dtype_size_bytes(dtype)) * 8;
      const int64_t largest = static_cast<int64_t>(UINT64_MAX >> (65 - width));
      const int64_t special[] = {0, 1, -1, largest, -largest - 1, 2, largest - 1};
      if (i < std::ssize(special)) return special[i];
      return static_cast<int64_t>(random()) << 32 | random();
    }
    case Fill::kPositive: return i % 5 + 1;
    case Fill::kUnit: return i % 3 - 1;
    default: return static_cast<int64_t>(real_value(fill, i, dtype, random));
  }
}

Array filled(DType dtype, const Sizes& sizes, Fill fill, unsigned seed) {
  Array array(dtype, sizes);
  std::mt19937 random(seed);
  for (int64_t i = 0; i < array.count(); ++i) {
    // Each param begins elsewhere among the special values, so that they meet each other.
    const int64_t at = fill == Fill::kAny ? (i * (2 * static_cast<int64_t>(seed) + 1)) % std::max<int64_t>(array.count(), 1) : i;
    if (is_floating(dtype)) {
      array.set_real(i, real_value(fill, at, dtype, random));
    } else if (dtype == DType::kBool) {
      array.set_integer(i, static_cast<int64_t>(random() & 1));
    } else {
      array.set_integer(i, integer_value(fill, at, dtype, random));
    }
  }
  return array;
}

// The inputs of a run of a graph.
struct Inputs {
  std::vector<Array> arrays;
  std::vector<Scalar> scalars;
};

Inputs inputs_for(const Graph& graph, std::string_view fills) {
  Inputs inputs;
  unsigned seed = 0;
  for (const Param& param : graph.params) {
    const Type& type = graph.type(param.value);
    if (param.scalar) {
      Scalar value{};
      if (type.dtype == DType::kF64) value.f = 0.0625;
      if (type.dtype == DType::kI64) value.i = 3 + static_cast<int64_t>(inputs.scalars.size()) * 1000;
      inputs.scalars.push_back(value);
      continue;
    }
    const auto fill = static_cast<Fill>(fills[std::min<size_t>(seed, fills.size() - 1)]);
    inputs.arrays.push_back(filled(type.dtype, type.sizes, fill, seed));
    ++seed;
  }
  return inputs;
}

// ---- comparison

double epsilon(DType dtype) {
  switch (dtype) {
    case DType::kF16: return std::ldexp(1.0, -10);
    case DType::kBF16: return std::ldexp(1.0, -7);
    case DType::kF32: return std::numeric_limits<float>::epsilon();
    default: return std::numeric_limits<double>::epsilon();
  }
}

double smallest_normal(DType dtype) {
  return dtype == DType::kF64   ? std::numeric_limits<double>::min()
         : dtype == DType::kF16 ? std::ldexp(1.0, -14)
                                : std::numeric_limits<float>::min();
}

bool close(double got, double expected, DType dtype, Tolerance tolerance) {
  if (std::isnan(expected) || std::isnan(got)) return std::isnan(expected) && std::isnan(got);
  if (got == expected) return tolerance.ulps > 0 || got != 0 || std::signbit(got) == std::signbit(expected);
  if (tolerance.ulps == 0 || std::isinf(got) || std::isinf(expected)) return false;
  const double scale = std::max(std::fabs(expected), tolerance.floor);
  return std::fabs(got - expected) <= tolerance.ulps * epsilon(dtype) * scale + smallest_normal(dtype);
}

::testing::AssertionResult same(const Array& got, const Array& expected, Tolerance tolerance) {
  int64_t wrong = 0, first = 0;
  for (int64_t i = expected.count() - 1; i >= 0; --i) {
    const bool good = is_floating(expected.dtype) ? close(got.real(i), expected.real(i), expected.dtype, tolerance)
                                                  : got.integer(i) == expected.integer(i);
    if (!good) ++wrong, first = i;
  }
  if (wrong == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << wrong << " of " << expected.count() << " elements differ, the first at " << first
                                       << ": got " << got.element_text(first) << ", expected " << expected.element_text(first)
                                       << " within " << tolerance.ulps << " ulps (of at least " << tolerance.floor << ")";
}

std::string texts_of(const Inputs& inputs) {
  std::string text;
  for (const Array& array : inputs.arrays) {
    text += cat(text.empty() ? "" : "; ", dtype_name(array.dtype), conformance::text(array.sizes), " ");
    for (int64_t i = 0; i < std::min<int64_t>(array.count(), 6); ++i) text += cat(i ? ", " : "", array.element_text(i));
    if (array.count() > 6) text += ", ...";
  }
  return text;
}

// ---- the checks

class GraphTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (!instance().computes()) LTC_NOT_APPLICABLE("the plugin holds memory and does not compute");
  }

  bool has_dtypes(const Graph& graph) {
    std::vector<bool> scalar(graph.types.size(), false);
    for (const Param& param : graph.params) scalar[param.value] = param.scalar;
    for (ValueId value = 0; value < graph.types.size(); ++value) {
      if (!scalar[value] && !device().supports(graph.type(value).dtype)) return false;
    }
    return true;
  }
  std::vector<uint32_t> claims(const Graph& graph) {
    std::vector<uint32_t> clusters;
    EXPECT_OK(device().claims(*AbiGraph(graph).get(), clusters));
    return clusters;
  }
  bool all_claimed(const Graph& graph) { return std::ranges::count(claims(graph), 0u) == 0; }

  void expect_equal(const Graph& graph, const Graph& reference, std::string_view fills, Tolerance tolerance) {
    const Inputs inputs = inputs_for(graph, fills);
    const std::vector<Array> expected = evaluate(reference, inputs.arrays, inputs.scalars);
    const Executable executable = device().build(graph);
    std::vector<Buffer> buffers;
    Device::RunArgs args{executable, {}, graph.outputs.size()};
    for (const Array& array : inputs.arrays) args.inputs.push_back(buffers.emplace_back(device().upload(array)).get());
    for (const Scalar& scalar : inputs.scalars) args.scalars.push_back(integer(scalar.i));
    const auto outputs = device().run(args);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Type& type = graph.type(graph.outputs[i]);
      const Array got = device().download(outputs[i], type.dtype, type.sizes);
      EXPECT_TRUE(same(got, expected[i], tolerance)) << "output " << i << " of\n" << print(graph) << "with " << texts_of(inputs);
    }
  }
};

class OpTest : public GraphTest {
 public:
  OpTest(const OpCase& row, DType dtype) : row_(row), dtype_(dtype) {}

  void TestBody() override {
    if (!device().supports(dtype_)) LTC_UNSUPPORTED_BY_PLUGIN("the device has no ", dtype_name(dtype_));
    bool ran = false;
    for (const std::string& text : graphs_of(row_, dtype_)) {
      const Graph graph = parse(text);
      if (!has_dtypes(graph)) continue;
      ran = true;
      if (!all_claimed(graph)) {
        ADD_FAILURE() << "not claimed: every plugin that computes lowers the minimal opset for the dtypes of its device:\n"
                      << text;
        return;
      }
      expect_equal(graph, graph, row_.fills, row_.tolerance);
    }
    if (!ran) LTC_UNSUPPORTED_BY_PLUGIN("the device lacks a dtype of every graph with ", row_.op);
  }

 private:
  const OpCase& row_;
  DType dtype_;
};

class DerivedTest : public GraphTest {
 public:
  explicit DerivedTest(const ProgramCase& row) : row_(row) {}

  void TestBody() override {
    const Graph graph = parse(row_.graph);
    if (!has_dtypes(graph)) LTC_UNSUPPORTED_BY_PLUGIN("the device lacks a dtype of the graph");
    if (!all_claimed(graph)) LTC_NOT_APPLICABLE("not claimed: the host decomposes it");
    expect_equal(graph, decompose::minimal_form(graph), row_.fills, row_.tolerance);
  }

 private:
  const ProgramCase& row_;
};

class ProgramTest : public GraphTest {
 public:
  explicit ProgramTest(const ProgramCase& row) : row_(row) {}

  void TestBody() override {
    Graph graph = parse(row_.graph);
    const Graph reference = decompose::minimal_form(graph);
    // As the host does it: what the plugin does not claim is taken apart.
    decompose::decompose(graph, [this](const Graph& g) { return claims(g); });
    if (!has_dtypes(graph)) LTC_UNSUPPORTED_BY_PLUGIN("the device lacks a dtype of the program");
    const auto clusters = claims(graph);
    for (size_t i = 0; i < clusters.size(); ++i) {
      EXPECT_NE(clusters[i], 0u) << "not claimed, nor can it be taken apart to what is: " << op_name(graph.nodes[i].op)
                                 << ": the host would have to run it";
    }
    if (!HasFailure()) expect_equal(graph, reference, row_.fills, row_.tolerance);
  }

 private:
  const ProgramCase& row_;
};

std::string test_name(std::string_view op, DType dtype) {
  std::string name(op.substr(op.find("::") + 2));
  std::ranges::replace(name, '.', '_');
  return name + "_" + std::string(dtype_name(dtype));
}

template <typename Make>
void add_test(const char* suite, const std::string& name, Make make) {
  ::testing::RegisterTest(suite, name.c_str(), nullptr, nullptr, __FILE__, __LINE__, make);
}

}  // namespace

void register_ops() {
  for (const OpCase& row : op_cases()) {
    for (const DType dtype : dtypes_of(row.dtypes)) {
      add_test("Ops", test_name(row.op, dtype), [&row, dtype]() -> GraphTest* { return new OpTest(row, dtype); });
    }
  }
  for (const ProgramCase& row : derived_cases()) {
    add_test("OpsDerived", std::string(row.name), [&row]() -> GraphTest* { return new DerivedTest(row); });
  }
  for (const ProgramCase& row : program_cases()) {
    add_test("Programs", std::string(row.name), [&row]() -> GraphTest* { return new ProgramTest(row); });
  }
}

}  // namespace ltc::conformance
