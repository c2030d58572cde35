// Tests beyond the conformance suite: how libraries are found and refused, and the text of programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pjrt/objects.h"
#include "pjrt/stablehlo/module.h"

namespace ltc::pjrt {
namespace {

using testing::HasSubstr;

template <typename Body>
std::string failure_of(Body body) {
  try {
    body();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "no failure";
}
std::string loading(const char* path) {
  return failure_of([&] { Library library(path); });
}

TEST(Library, that_does_not_exist_is_named) { EXPECT_THAT(loading("/nowhere/lib.so"), HasSubstr("/nowhere/lib.so")); }
TEST(Library, of_something_else_is_refused) { EXPECT_THAT(loading("libm.so.6"), HasSubstr("libm.so.6 is no library of PJRT")); }
TEST(Library, of_another_major_version_is_refused) { EXPECT_THAT(loading(LTC_STUB_MAJOR_1), HasSubstr("speaks PJRT 1.7")); }
TEST(Library, with_a_short_table_is_refused) { EXPECT_THAT(loading(LTC_STUB_MAJOR_0), HasSubstr("speaks PJRT 0.7")); }

TEST(Library, is_found_by_path_or_name) {
  EXPECT_EQ(find_library("/some/where.so"), "/some/where.so");
  EXPECT_THAT(failure_of([] { find_library("my-chip"); }),
              AllOf(HasSubstr("called 'my-chip'"), HasSubstr("libtpu, jax-cuda13-pjrt")));
}

TEST(Executable, that_names_an_output_it_does_not_have_is_refused) {
  Signature signature;
  signature.inputs = {{LTC_F32, {2}}};
  signature.becomes = {0};
  std::string bytes;
  EXPECT_THAT(failure_of([&] { read_executable(write_executable(signature, ""), bytes); }), HasSubstr("damaged"));
  signature.becomes = {};
  EXPECT_THAT(failure_of([&] { read_executable(write_executable(signature, ""), bytes); }), HasSubstr("damaged"));
  signature.becomes = {LTC_NONE};
  EXPECT_EQ(failure_of([&] { read_executable(write_executable(signature, "x"), bytes); }), "no failure");
  EXPECT_EQ(bytes, "x");
}

TEST(Formula, is_written_op_by_op) {
  Module m;
  m.set_node(3);
  const Type type{LTC_F32, {2}};
  const Value result = m.eval("floor(x);select(LT(z,0),y,T(i64(z)))", {{"%a", type}, {"%b", type}});
  EXPECT_EQ(result.type, type);
  EXPECT_THAT(m.text(), HasSubstr("%0 = \"stablehlo.floor\"(%a) : (tensor<2xf32>) -> (tensor<2xf32>) loc(\"node 3\")"));
  EXPECT_THAT(m.text(), HasSubstr("\"stablehlo.select\"(%3, %b, %5) : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>)"));
}

TEST(Formula, takes_numbers_as_the_operand_beside_them) {
  Module m;
  (void)m.eval("and(x,-1)", {{"%a", {LTC_U8, {3}}}});
  EXPECT_THAT(m.text(), HasSubstr("dense<255> : tensor<ui8>"));
}

TEST(Type, knows_what_is_only_held) {
  EXPECT_EQ(element(LTC_C32).bits, 32);
  EXPECT_EQ(element(0x10000).text, nullptr);
}

}  // namespace
}  // namespace ltc::pjrt
