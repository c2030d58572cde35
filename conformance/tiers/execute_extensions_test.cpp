// The execute tier: what the headers of the extensions say beyond right results: who borrows what, versions, chains
// (ltc/symbolic.h, ltc/precision.h).
#include <optional>

#include "conformance/tiers/execute_fixture.h"
#include "ltc/entry.h"
#include "ltc/precision.h"
#include "ltc/symbolic.h"

namespace ltc::conformance {
namespace {

bool lists(const ltc_plugin_api& api, uint32_t kind) { return ltc_find_extension(api.ext, kind) != nullptr; }

// neg of a vector whose size is the one symbol.
class ExecuteSymbols : public Execute {
 protected:
  void SetUp() override {
    Execute::SetUp();
    if (!IsSkipped() && !lists(api(), LTC_EXTENSION_SYMBOLIC))
      LTC_NOT_APPLICABLE("the plugin does not list the extension ltc/symbolic.h");
  }
  static ltc_symbolic_sizes table(const std::vector<ltc_symbolic_number>& numbers, size_t symbols = 1) {
    return {
        {LTC_SIZE_TO(ltc_symbolic_sizes, numbers), LTC_EXTENSION_SYMBOLIC, 1, nullptr}, symbols, numbers.size(), numbers.data()};
  }
  static ltc_symbol_values values(const int64_t* symbols, size_t count = 1) {
    return {{LTC_SIZE_TO(ltc_symbol_values, values), LTC_EXTENSION_SYMBOLIC, 1, nullptr}, count, symbols};
  }
  // Throws where the plugin refuses.
  Executable build(const ltc_extension* ext) {
    const Graph graph = parse("graph(%0: f32[10]) { %1: f32[10] = aten::neg(%0) return %1 }");
    Program program;
    if (const Failure failure = device().lower(*AbiGraph(graph).get(), program, ext)) throw std::runtime_error(failure.message);
    return device().compile(program);
  }
  Executable build() {
    const ltc_symbolic_sizes sizes = table(kNumbers);
    return build(&sizes.head);
  }
  Device::Run submit(const Executable& executable, const Buffer& input, const ltc_extension* ext) {
    return device().submit({.executable = executable, .inputs = {input.get()}, .ext = ext});
  }
  void expect_negated(const Executable& executable, int64_t size, const ltc_extension* ext) {
    const Buffer input = device().upload(Array::floats(Floats(static_cast<size_t>(size), 3)));
    const auto run = submit(executable, input, ext);
    ASSERT_OK(run.submitted);
    ASSERT_OK(device().finish(run.done));
    EXPECT_EQ(floats(run.outputs[0], {size}), Floats(static_cast<size_t>(size), -3));
  }

  static inline const std::vector<ltc_symbolic_number> kNumbers{{0, LTC_NONE, 0, 0, 1, 0}, {1, LTC_NONE, 0, 0, 1, 0}};
};

TEST_F(ExecuteSymbols, the_table_may_go_when_lower_returns) {
  auto numbers = std::make_unique<std::vector<ltc_symbolic_number>>(kNumbers);
  ltc_symbolic_sizes sizes = table(*numbers);
  const Executable executable = build(&sizes.head);
  numbers->assign(2, ltc_symbolic_number{9, 9, 9, 9, 9, 9});
  sizes.symbol_count = 99;
  const int64_t n = 7;
  const ltc_symbol_values symbols = values(&n);
  expect_negated(executable, 7, &symbols.head);
}

TEST_F(ExecuteSymbols, values_may_go_when_execute_returns) {
  const Executable executable = build();
  std::vector<Device::Run> runs;
  for (int64_t size = 1; size <= 20; ++size) {
    int64_t n = size;
    const ltc_symbol_values symbols = values(&n);
    const Buffer input = device().upload(Array::floats(Floats(static_cast<size_t>(size), 3)));
    runs.push_back(submit(executable, input, &symbols.head));
    n = -1;
    ASSERT_OK(runs.back().submitted);
  }
  for (size_t size = 1; size <= 20; ++size)
    EXPECT_EQ(floats(runs[size - 1].outputs[0], {static_cast<int64_t>(size)}), Floats(size, -3))
        << "values of the run with " << size;
}

TEST_F(ExecuteSymbols, the_table_is_found_behind_an_unknown_extension) {
  ltc_symbolic_sizes sizes = table(kNumbers);
  const ltc_extension first{sizeof(ltc_extension), 0x7fff0004u, 1, &sizes.head};
  const Executable executable = build(&first);
  const int64_t n = 5;
  const ltc_symbol_values symbols = values(&n);
  expect_negated(executable, 5, &symbols.head);
}

TEST_F(ExecuteSymbols, values_are_found_behind_an_unknown_extension) {
  const Executable executable = build();
  const int64_t n = 5;
  const ltc_symbol_values symbols = values(&n);
  const ltc_extension first{sizeof(ltc_extension), 0x7fff0004u, 1, &symbols.head};
  expect_negated(executable, 5, &first);
}

TEST_F(ExecuteSymbols, too_many_values_are_refused) {
  const Executable executable = build();
  const int64_t two[] = {4, 4};
  const ltc_symbol_values symbols = values(two, 2);
  const Buffer input = four();
  EXPECT_EQ(code_text(submit(executable, input, &symbols.head).submitted.code), "INVALID_ARGUMENT") << "2 symbols of 1";
}

TEST_F(ExecuteSymbols, values_for_a_graph_without_symbols_are_refused) {
  const Executable executable = device().build(kNeg4);
  const int64_t n = 4;
  const ltc_symbol_values symbols = values(&n);
  const Buffer input = four();
  EXPECT_EQ(code_text(submit(executable, input, &symbols.head).submitted.code), "INVALID_ARGUMENT")
      << "the contract: values are given exactly where the executable comes from a graph with symbols";
}

TEST_F(ExecuteSymbols, a_larger_value_than_the_inputs_size_is_refused) {
  const Executable executable = build();
  const int64_t n = 5;
  const ltc_symbol_values symbols = values(&n);
  const Buffer input = four();
  EXPECT_EQ(code_text(submit(executable, input, &symbols.head).submitted.code), "INVALID_ARGUMENT") << "f32[4] for f32[5]";
}

TEST_F(ExecuteSymbols, a_number_may_be_scaled_and_shifted) {
  const Graph graph = parse("graph(%0: f32[21]) { %1: f32[21] = aten::neg(%0) return %1 }");
  const std::vector<ltc_symbolic_number> numbers{{0, LTC_NONE, 0, 0, 2, 1}, {1, LTC_NONE, 0, 0, 2, 1}};
  const ltc_symbolic_sizes sizes = table(numbers);
  Program program;
  ASSERT_OK(device().lower(*AbiGraph(graph).get(), program, &sizes.head));
  const Executable executable = device().compile(program);
  for (const int64_t n : {int64_t{0}, int64_t{10}, int64_t{33}}) {
    const ltc_symbol_values symbols = values(&n);
    expect_negated(executable, 2 * n + 1, &symbols.head);
  }
}

TEST_F(ExecuteSymbols, two_executables_keep_their_sizes_apart) {
  const Executable first = build(), second = build();
  for (const int64_t n : {int64_t{3}, int64_t{8}}) {
    const int64_t other = 11 - n;
    const ltc_symbol_values one = values(&n), two = values(&other);
    expect_negated(first, n, &one.head);
    expect_negated(second, other, &two.head);
  }
}

TEST_F(ExecuteSymbols, a_donated_input_has_the_size_of_the_run) {
  const Graph graph = parse("graph(%0: f32[10] -> 0) { %1: f32[10] = aten::neg(%0) return %1 }");
  const ltc_symbolic_sizes sizes = table(kNumbers);
  Program program;
  ASSERT_OK(device().lower(*AbiGraph(graph).get(), program, &sizes.head));
  const Executable executable = device().compile(program);
  for (const int64_t n : {int64_t{4}, int64_t{1000}, int64_t{1}}) {
    const ltc_symbol_values symbols = values(&n);
    Buffer input = device().upload(Array::floats(Floats(static_cast<size_t>(n), 3)));
    const auto run = device().submit({.executable = executable, .inputs = {input.get()}, .donate = {1}, .ext = &symbols.head});
    ASSERT_OK(run.submitted);
    (void)input.release();
    EXPECT_EQ(floats(run.outputs[0], {n}), Floats(static_cast<size_t>(n), -3)) << n << " elements";
  }
}

// ---- permissions to round

class ExecutePrecision : public Execute {
 protected:
  void SetUp() override {
    Execute::SetUp();
    if (!IsSkipped() && !lists(api(), LTC_EXTENSION_PRECISION))
      LTC_NOT_APPLICABLE("the plugin does not list the extension ltc/precision.h");
  }
  static ltc_precision allowed(uint32_t bits) {
    return {{LTC_SIZE_TO(ltc_precision, allowed), LTC_EXTENSION_PRECISION, 1, nullptr}, bits};
  }
  // The first element of what the graph gives; nothing where it is not claimed.
  std::optional<double> first_of(const std::string& text, const std::vector<Array>& inputs, const ltc_extension* ext) {
    for (const Array& input : inputs) {
      if (!device().supports(input.dtype)) return std::nullopt;
    }
    if (claims(text)[0] == 0) return std::nullopt;
    const Graph graph = parse(text);
    Program program;
    EXPECT_OK(device().lower(*AbiGraph(graph).get(), program, ext));
    if (!program) return std::nullopt;
    std::vector<Buffer> buffers;
    std::vector<ltc_buffer*> handles;
    for (const Array& input : inputs) buffers.push_back(device().upload(input)), handles.push_back(buffers.back().get());
    const Executable executable = device().compile(program);
    const Type& type = type_of(graph.types[graph.outputs[0]]);
    return device().download(device().run({executable, handles})[0], type.dtype, type.sizes).real(0);
  }
  // The product of 1 + 2^-20, which TF32 does not hold, and 1.
  std::optional<double> product(const ltc_extension* ext) {
    return first_of("graph(%0: f32[1,16,16], %1: f32[1,16,16]) { %2: f32[1,16,16] = aten::bmm(%0, %1) return %2 }",
                    {diagonal({1, 16, 16}, 1 + 0x1p-20), diagonal({1, 16, 16}, 1)}, ext);
  }
  std::optional<double> convolution(const ltc_extension* ext) {
    return first_of(
        "graph(%0: f32[1,16,4,4], %1: f32[16,16,1,1]) { %2: f32[1,16,4,4] = aten::convolution(%0, %1, none) "
        "{stride=[1,1],padding=[0,0],dilation=[1,1],transposed=false,output_padding=[0,0],groups=1} return %2 }",
        {diagonal({1, 16, 4, 4}, 1 + 0x1p-20), diagonal({16, 16, 1, 1}, 1)}, ext);
  }
  // Each row is a large number, two ones and the large number's negative, far apart: rounded to `dtype`, a part of their sum that
  // has the large number loses its one.
  std::optional<double> sum_of_parts(DType dtype, double large, const ltc_extension* ext) {
    constexpr int64_t kLength = 4096;
    Array x(dtype, {1, 16, kLength}), ones(dtype, {1, kLength, 16});
    for (int64_t row = 0; row < 16; ++row) {
      x.set_real(row * kLength, large);
      x.set_real(row * kLength + 1, 1);
      x.set_real(row * kLength + kLength / 2, 1);
      x.set_real(row * kLength + kLength - 1, -large);
    }
    for (int64_t i = 0; i < ones.count(); ++i) ones.set_real(i, 1);
    const char* name = dtype == DType::kF16 ? "f16" : "bf16";
    return first_of(cat("graph(%0: ", name, "[1,16,4096], %1: ", name, "[1,4096,16]) { %2: ", name,
                        "[1,16,16] = aten::bmm(%0, %1) return %2 }"),
                    {x, ones}, ext);
  }

 private:
  static Array diagonal(const Sizes& sizes, double value) {
    Array result(DType::kF32, sizes);
    for (int64_t i = 0; i < result.count(); i += 17) result.set_real(i, value);
    return result;
  }
};

#define LTC_CLAIMED(result, call)            \
  const std::optional<double> result = call; \
  if (!(result)) LTC_UNSUPPORTED_BY_PLUGIN("not claimed: such a product")

TEST_F(ExecutePrecision, without_a_permission_products_keep_their_bits) {
  const ltc_precision none = allowed(0);
  LTC_CLAIMED(result, product(&none.head));
  EXPECT_EQ(*result, 1 + 0x1p-20) << "the operands were rounded, and no permission allows that";
}

TEST_F(ExecutePrecision, a_permission_for_convolutions_is_none_for_products) {
  const ltc_precision others = allowed(~uint32_t{LTC_PRODUCTS_IN_TF32});
  LTC_CLAIMED(result, product(&others.head));
  EXPECT_EQ(*result, 1 + 0x1p-20);
}

TEST_F(ExecutePrecision, a_permission_rounds_to_tf32_at_most) {
  const ltc_precision products = allowed(LTC_PRODUCTS_IN_TF32);
  LTC_CLAIMED(result, product(&products.head));
  EXPECT_NEAR(*result, 1, 0x1p-10) << "TF32 has 10 bits behind the point";
}

TEST_F(ExecutePrecision, without_a_permission_convolutions_keep_their_bits) {
  const ltc_precision none = allowed(0);
  LTC_CLAIMED(result, convolution(&none.head));
  EXPECT_EQ(*result, 1 + 0x1p-20) << "the operands were rounded, and no permission allows that";
}

TEST_F(ExecutePrecision, a_permission_for_products_is_none_for_convolutions) {
  const ltc_precision others = allowed(~uint32_t{LTC_CONVOLUTIONS_IN_TF32});
  LTC_CLAIMED(result, convolution(&others.head));
  EXPECT_EQ(*result, 1 + 0x1p-20);
}

TEST_F(ExecutePrecision, a_permission_rounds_convolutions_to_tf32_at_most) {
  const ltc_precision convolutions = allowed(LTC_CONVOLUTIONS_IN_TF32);
  LTC_CLAIMED(result, convolution(&convolutions.head));
  EXPECT_NEAR(*result, 1, 0x1p-10) << "TF32 has 10 bits behind the point";
}

TEST_F(ExecutePrecision, without_a_permission_sums_of_f16_are_rounded_at_their_end) {
  const ltc_precision others = allowed(~uint32_t{LTC_PARTIAL_SUMS_IN_F16});
  LTC_CLAIMED(result, sum_of_parts(DType::kF16, 2048, &others.head));
  EXPECT_EQ(*result, 2) << "a part of the sum was rounded to F16, and no permission allows that";
}

TEST_F(ExecutePrecision, without_a_permission_sums_of_bf16_are_rounded_at_their_end) {
  const ltc_precision others = allowed(~uint32_t{LTC_PARTIAL_SUMS_IN_BF16});
  LTC_CLAIMED(result, sum_of_parts(DType::kBF16, 256, &others.head));
  EXPECT_EQ(*result, 2) << "a part of the sum was rounded to BF16, and no permission allows that";
}

TEST_F(ExecutePrecision, permissions_that_nobody_knows_are_left_alone) {
  const ltc_precision unknown = allowed(~(LTC_PRODUCTS_IN_TF32 | LTC_CONVOLUTIONS_IN_TF32));
  const Graph graph = parse(kAdd4);
  Program program;
  EXPECT_OK(device().lower(*AbiGraph(graph).get(), program, &unknown.head)) << "permissions, never orders";
}

TEST_F(ExecutePrecision, permissions_are_found_behind_an_unknown_extension) {
  const ltc_precision none = allowed(0);
  const ltc_extension first{sizeof(ltc_extension), 0x7fff0004u, 1, &none.head};
  LTC_CLAIMED(result, product(&first));
  EXPECT_EQ(*result, 1 + 0x1p-20);
}

}  // namespace
}  // namespace ltc::conformance
