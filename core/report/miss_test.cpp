#include "core/report/miss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ir/op.h"

namespace ltc {
namespace {

// A chain of ops over one param, a record each; the last is held.
struct Step {
  Trace trace;
  std::vector<Root> roots;
  std::vector<LocationId> locations;

  Step(std::vector<std::string> ops, std::vector<int64_t> sizes, AttrList attrs = {}) {
    const TypeId type = intern_contiguous(DType::kF32, sizes);
    ValueId value = trace.add_param(kOpParam, type);
    for (const std::string& op : ops) {
      value = trace.add_node(intern_op(op), type, intern_attrs(attrs), {&value, 1});
      locations.push_back(intern_location("step.py:" + std::to_string(value)));
    }
    roots.push_back({value});
  }
};

std::string explain(const Step& now, const Step& then) {
  const auto miss = explain_miss(now.trace, now.roots, now.locations, {{then.trace, then.roots}});
  return miss ? miss->difference + at_location(miss->where) : "nothing like it";
}

const std::vector<int64_t> kSizes = {4};
const std::vector<std::string> kOps = {"aten::neg", "aten::exp", "aten::relu", "aten::neg"};

TEST(Miss, Sizes) {
  EXPECT_EQ(explain({kOps, {5}}, {kOps, {4}}), "a tensor from before is f32[5] instead of f32[4] at step.py:1");
}

TEST(Miss, Attribute) {
  EXPECT_EQ(explain({kOps, {4}, {Attr::of_int("dim", 1)}}, {kOps, {4}, {Attr::of_int("dim", 0)}}),
            "aten::neg has dim=1 instead of dim=0 at step.py:1");
}

TEST(Miss, Op) {
  EXPECT_EQ(explain({{"aten::neg", "aten::exp", "aten::sin", "aten::neg"}, {4}}, {kOps, {4}}),
            "aten::sin instead of aten::relu at step.py:3");
}

TEST(Miss, Length) {
  std::vector<std::string> longer = kOps;
  longer.push_back("aten::abs");
  EXPECT_EQ(explain({longer, {4}}, {kOps, {4}}), "the step goes on with aten::abs at step.py:5");
  EXPECT_EQ(explain({kOps, {4}}, {longer, {4}}), "the step ends before aten::abs at step.py:4");
}

TEST(Miss, Results) {
  Step more(kOps, {4});
  more.roots.insert(more.roots.begin(), Root{2});
  EXPECT_EQ(explain(more, {kOps, {4}}), "the result of aten::exp is still held at step.py:2");
  EXPECT_EQ(explain({kOps, {4}}, more), "the result of aten::exp is not held any more at step.py:2");
}

TEST(Miss, NothingLikeIt) {
  EXPECT_EQ(explain({{"aten::abs", "aten::abs", "aten::abs", "aten::abs"}, {4}}, {kOps, {4}}), "nothing like it");
}

// A read of part of a param, and an op of it.
Step sliced(int64_t offset, const char* op = "aten::neg") {
  Step step({}, {20});
  step.roots.clear();
  const ValueId whole = 0;
  const TypeId piece = intern_contiguous(DType::kF32, std::vector<int64_t>{4});
  const AttrList attrs = {Attr::of_ints("size", {4}), Attr::of_ints("stride", {1}), Attr::of_int("storage_offset", offset)};
  const ValueId read = step.trace.add_node(intern_op("aten::as_strided"), piece, intern_attrs(attrs), {&whole, 1});
  step.roots.push_back({step.trace.add_node(intern_op(op), piece, kNoAttrs, {&read, 1})});
  step.locations = {intern_location("step.py:1"), intern_location("step.py:2")};
  return step;
}

TEST(Miss, OffsetsAlone) {
  const auto offsets = [](const Step& now, const Step& then) {
    return explain_miss(now.trace, now.roots, now.locations, {{then.trace, then.roots}})->offsets;
  };
  const auto found = offsets(sliced(8), sliced(4));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(location_text(found[0].where), "step.py:1");
  EXPECT_EQ(found[0].geometry, intern_contiguous(DType::kF32, std::vector<int64_t>{4}));
  EXPECT_TRUE(offsets(sliced(8, "aten::exp"), sliced(4)).empty());
  EXPECT_TRUE(offsets(sliced(8, "aten::exp"), sliced(8)).empty());
}

// A read of x, which has n elements, and an op on that; three ops on y; one more on x: [x, read, neg, y, exp, relu, neg, add].
Step grown(int64_t n, const char* last = "aten::add") {
  const TypeId x_type = intern_contiguous(DType::kF32, std::vector<int64_t>{n}), type = intern_contiguous(DType::kF32, kSizes);
  Step step({}, {});
  step.trace.clear();
  const auto add = [&](const char* op, ValueId input) { return step.trace.add_node(intern_op(op), type, kNoAttrs, {&input, 1}); };
  const ValueId x = step.trace.add_param(kOpParam, x_type);
  add("aten::neg", add("aten::as_strided", x));
  const ValueId y = step.trace.add_param(kOpParam, type);
  add("aten::neg", add("aten::relu", add("aten::exp", y)));
  add(last, x);
  return step;
}

TEST(Miss, ThePartThatIsEqual) {
  const auto equal = [](const Step& now, const Step& then) { return explain_miss(now.trace, {}, {}, {{then.trace, {}}})->equal; };
  const auto part = equal(grown(5), grown(4));
  ASSERT_TRUE(part);
  EXPECT_EQ(part->begin, 3u);  // the read of x and what reads that belong to x
  EXPECT_EQ(part->end, 7u);
  EXPECT_FALSE(equal(grown(5, "aten::mul"), grown(4)));
}

TEST(Miss, TheOneWithMostEqualRecords) {
  const Step now = sliced(8), near = sliced(4);
  Step far({"aten::as_strided", "aten::neg"}, {20});
  const auto miss = explain_miss(now.trace, now.roots, now.locations, {{far.trace, far.roots}, {near.trace, near.roots}});
  EXPECT_EQ(miss->difference, "aten::as_strided has storage_offset=8 instead of storage_offset=4");
}

}  // namespace
}  // namespace ltc
