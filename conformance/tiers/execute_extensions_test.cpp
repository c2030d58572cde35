// The execute tier: what the headers of the extensions say beyond right results: who borrows what, versions, chains
// (ltc/symbolic.h, ltc/precision.h).
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
  // A product of 1 + 2^-20, which TF32 does not hold, and 1; 0 where it is not claimed.
  float product(const ltc_extension* ext) {
    constexpr int64_t kSize = 16;
    const std::string type = cat("f32[1,", kSize, ",", kSize, "]");
    const std::string text = cat("graph(%0: ", type, ", %1: ", type, ") { %2: ", type, " = aten::bmm(%0, %1) return %2 }");
    if (claims(text)[0] == 0) return 0;
    const Graph graph = parse(text);
    Program program;
    EXPECT_OK(device().lower(*AbiGraph(graph).get(), program, ext));
    if (!program) return 0;
    Floats a(kSize * kSize, 0), b(kSize * kSize, 0);
    for (size_t i = 0; i < kSize; ++i) a[i * kSize + i] = 1 + 0x1p-20f, b[i * kSize + i] = 1;
    const Buffer x = device().upload(Array::floats({1, kSize, kSize}, a)),
                 y = device().upload(Array::floats({1, kSize, kSize}, b));
    const Executable executable = device().compile(program);
    return floats(device().run({executable, {x.get(), y.get()}})[0], {1, kSize, kSize})[0];
  }
};
constexpr const char* kNoProduct = "not claimed: aten::bmm";

TEST_F(ExecutePrecision, without_a_permission_products_keep_their_bits) {
  const ltc_precision none = allowed(0);
  const float result = product(&none.head);
  if (result == 0) LTC_UNSUPPORTED_BY_PLUGIN(kNoProduct);
  EXPECT_EQ(result, 1 + 0x1p-20f) << "the operands were rounded, and no permission allows that";
}

TEST_F(ExecutePrecision, a_permission_for_convolutions_is_none_for_products) {
  const ltc_precision convolutions = allowed(LTC_CONVOLUTIONS_IN_TF32);
  const float result = product(&convolutions.head);
  if (result == 0) LTC_UNSUPPORTED_BY_PLUGIN(kNoProduct);
  EXPECT_EQ(result, 1 + 0x1p-20f);
}

TEST_F(ExecutePrecision, a_permission_rounds_to_tf32_at_most) {
  const ltc_precision products = allowed(LTC_PRODUCTS_IN_TF32);
  const float result = product(&products.head);
  if (result == 0) LTC_UNSUPPORTED_BY_PLUGIN(kNoProduct);
  EXPECT_NEAR(result, 1, 0x1p-10) << "TF32 has 10 bits behind the point";
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
  const float result = product(&first);
  if (result == 0) LTC_UNSUPPORTED_BY_PLUGIN(kNoProduct);
  EXPECT_EQ(result, 1 + 0x1p-20f);
}

}  // namespace
}  // namespace ltc::conformance
