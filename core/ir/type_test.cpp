#include "core/ir/type.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace ltc {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Type& f32(std::vector<int64_t> sizes, std::vector<int64_t> strides) {
  return type_of(intern_type(DType::kF32, sizes, strides));
}

TEST(Type, EqualOnesHaveOneId) {
  const std::vector<int64_t> sizes = {2, 3}, row_major = {3, 1}, column_major = {1, 2};
  const TypeId id = intern_type(DType::kF32, sizes, row_major);
  EXPECT_EQ(intern_contiguous(DType::kF32, sizes), id);
  EXPECT_NE(intern_contiguous(DType::kI64, sizes), id);
  EXPECT_NE(intern_contiguous(DType::kF32, row_major), id);
  EXPECT_NE(intern_type(DType::kF32, sizes, column_major), id);
  EXPECT_TRUE(same_shape(type_of(id), f32(sizes, column_major)));
  EXPECT_FALSE(same_shape(type_of(id), type_of(intern_contiguous(DType::kI64, sizes))));
}

TEST(Type, SizesAndStridesAreNotMixedUp) {
  // The same integers in one row, cut at another place.
  const std::vector<int64_t> one = {2}, both = {2, 1}, other = {1};
  EXPECT_NE(intern_type(DType::kF32, both, both), intern_type(DType::kF32, one, other));
}

TEST(Type, Scalar) {
  const Type& type = type_of(scalar_type(DType::kF64));
  EXPECT_THAT(type.sizes, IsEmpty());
  EXPECT_EQ(type.element_count, 1);
  EXPECT_EQ(type.size_bytes(), 8u);
  EXPECT_TRUE(type.dense && type.contiguous);
  EXPECT_THAT(memory_order(type), IsEmpty());
}

TEST(Type, RowMajor) {
  const Type& type = f32({2, 3, 4}, {12, 4, 1});
  EXPECT_TRUE(type.dense && type.contiguous);
  EXPECT_EQ(type.size_bytes(), 96u);
  EXPECT_THAT(memory_order(type), ElementsAre(0, 1, 2));
}

TEST(Type, Permuted) {
  const Type& type = f32({2, 3, 4}, {1, 8, 2});
  EXPECT_TRUE(type.dense);
  EXPECT_FALSE(type.contiguous);
  EXPECT_THAT(memory_order(type), ElementsAre(1, 2, 0));
}

TEST(Type, DimsOfSizeOneMayHaveAnyStride) {
  EXPECT_TRUE(f32({2, 1, 3}, {3, 777, 1}).contiguous);
  EXPECT_TRUE(f32({1, 1}, {0, 5}).contiguous);
  const Type& type = f32({2, 1, 3}, {1, 0, 2});
  EXPECT_TRUE(type.dense);
  EXPECT_FALSE(type.contiguous);
  EXPECT_THAT(memory_order(type), ElementsAre(1, 2, 0));
}

TEST(Type, Empty) {
  const Type& type = f32({3, 0, 2}, {1, 9, 5});
  EXPECT_EQ(type.element_count, 0);
  EXPECT_EQ(type.size_bytes(), 0u);
  EXPECT_TRUE(type.dense && type.contiguous);
  EXPECT_THAT(memory_order(type), ElementsAre(0, 1, 2));
}

TEST(Type, ExpandedOverlappingAndGappedOnesAreNotDense) {
  for (const Type* type :
       {&f32({2, 3}, {0, 1}), &f32({2, 3}, {3, 0}), &f32({2, 2}, {1, 1}), &f32({2, 3}, {4, 1}), &f32({3}, {2})}) {
    EXPECT_FALSE(type->dense);
    EXPECT_FALSE(type->contiguous);
  }
}

TEST(Type, ContiguousStrides) {
  EXPECT_THAT(contiguous_strides(std::vector<int64_t>{2, 3, 4}), ElementsAre(12, 4, 1));
  EXPECT_THAT(contiguous_strides(std::vector<int64_t>{2, 0, 4}), ElementsAre(4, 4, 1));
  EXPECT_THAT(contiguous_strides(std::vector<int64_t>{}), IsEmpty());
}

TEST(Type, ThreadsInternTheSameIds) {
  constexpr size_t kThreads = 4, kTypes = 300;  // more than one block of the table
  std::vector<std::vector<TypeId>> ids(kThreads, std::vector<TypeId>(kTypes));
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&ids, t] {
      for (size_t i = 0; i < kTypes; ++i) {
        const std::vector<int64_t> sizes = {7777, static_cast<int64_t>(i)};
        ids[t][i] = intern_contiguous(DType::kF32, sizes);
        EXPECT_EQ(type_of(ids[t][i]).sizes, sizes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(ids, Each(ids[0]));
}

}  // namespace
}  // namespace ltc
