// The tiers ops and programs: runs graphs on the plugin and compares each result with the reference.
#include <algorithm>

#include "conformance/kit/fixture.h"
#include "conformance/ops/cases.h"
#include "conformance/ops/compare.h"
#include "conformance/ops/inputs.h"
#include "conformance/ops/reference.h"
#include "conformance/ops/register.h"
#include "core/compile/lowering/abi_graph.h"
#include "core/decompose/decompose.h"
#include "core/ir/text.h"

namespace ltc::conformance {
namespace {

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
      const std::string wrong = difference(got, expected[i], tolerance);
      EXPECT_EQ(wrong, "") << "output " << i << " of\n" << print(graph) << "with " << texts_of(inputs);
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

template <typename Make>
void add_test(const char* suite, const std::string& name, Make make) {
  ::testing::RegisterTest(suite, name.c_str(), nullptr, nullptr, __FILE__, __LINE__, make);
}

}  // namespace

void register_ops() {
  for (const OpCase& row : op_cases()) {
    for (const DType dtype : dtypes_of(row.dtypes)) {
      add_test("Ops", case_name(row.op, dtype), [&row, dtype]() -> GraphTest* { return new OpTest(row, dtype); });
    }
  }
  for (const auto& rows : {derived_cases(), form_cases()}) {
    for (const ProgramCase& row : rows) {
      add_test("OpsDerived", std::string(row.name), [&row]() -> GraphTest* { return new DerivedTest(row); });
    }
  }
  for (const ProgramCase& row : program_cases()) {
    add_test("Programs", std::string(row.name), [&row]() -> GraphTest* { return new ProgramTest(row); });
  }
}

}  // namespace ltc::conformance
