#include "core/compile/cache/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ltc {
namespace {

using ::testing::ElementsAre;

const TypeId kType = intern_contiguous(DType::kF32, std::vector<int64_t>{2});
const std::vector<Root> kRoots = {{1}};

// A param and one node.
Trace trace_of(std::string_view op) {
  Trace trace;
  trace.add_param(kOpParam, kType);
  trace.add_node(intern_op(op), kType, kNoAttrs, std::vector<ValueId>{0});
  return trace;
}

const CachedProgram* insert(ProgramCache& cache, Trace trace, std::vector<Root> roots, std::shared_ptr<const Program> program,
                            uint32_t precision = 0) {
  auto step = std::make_shared<RecordedStep>(RecordedStep{std::move(trace), std::move(roots), precision});
  return cache.insert({std::move(program), std::move(step)});
}
// A program that is known by its name on the disk.
const CachedProgram* insert(ProgramCache& cache, Trace trace, std::vector<Root> roots, const std::string& name,
                            uint32_t precision = 0) {
  auto program = std::make_shared<Program>();
  program->saved_as = name;
  return insert(cache, std::move(trace), std::move(roots), std::move(program), precision);
}

// The name of the program found, or "none".
std::string find(ProgramCache& cache, const Trace& trace, const std::vector<Root>& roots = kRoots) {
  const CachedProgram* found = cache.find(trace, roots);
  return found ? found->program->saved_as : "none";
}

TEST(ProgramCache, FindsWhatWasInserted) {
  ProgramCache cache(4);
  EXPECT_EQ(find(cache, trace_of("aten::neg")), "none");
  const CachedProgram* inserted = insert(cache, trace_of("aten::neg"), kRoots, "neg");
  EXPECT_EQ(cache.find(trace_of("aten::neg"), kRoots), inserted);
  EXPECT_EQ(inserted->program->saved_as, "neg");
  EXPECT_EQ(inserted->step->trace, trace_of("aten::neg"));
  EXPECT_EQ(find(cache, trace_of("aten::relu")), "none");
  EXPECT_EQ(cache.size(), 1u);
  cache.clear();
  EXPECT_EQ(find(cache, trace_of("aten::neg")), "none");
  EXPECT_EQ(cache.size(), 0u);
}

TEST(ProgramCache, TheRootsArePartOfTheKey) {
  ProgramCache cache(4);
  const Trace trace = trace_of("aten::neg");
  insert(cache, trace, {{1}}, "kept");
  insert(cache, trace, {{1, 0}}, "donated");
  EXPECT_EQ(find(cache, trace, {{1}}), "kept");
  EXPECT_EQ(find(cache, trace, {{1, 0}}), "donated");
  EXPECT_EQ(find(cache, trace, {{0}}), "none");
  EXPECT_EQ(find(cache, trace, {{1}, {1}}), "none");
}

TEST(ProgramCache, WhatMayBeRoundedIsPartOfTheKey) {
  ProgramCache cache(4);
  const Trace trace = trace_of("aten::mm");
  insert(cache, trace, kRoots, "exact");
  insert(cache, trace, kRoots, "rounded", 1);
  EXPECT_EQ(cache.find(trace, kRoots)->program->saved_as, "exact");
  EXPECT_EQ(cache.find(trace, kRoots, 1)->program->saved_as, "rounded");
  EXPECT_EQ(cache.find(trace, kRoots, 2), nullptr);
}

TEST(ProgramCache, ACollisionCostsAComparison) {
  ProgramCache cache(4);
  Trace neg = trace_of("aten::neg"), relu = trace_of("aten::relu"), sin = trace_of("aten::sin");
  relu.hash = sin.hash = neg.hash;
  insert(cache, neg, kRoots, "neg");
  EXPECT_EQ(find(cache, relu), "none");
  insert(cache, relu, kRoots, "relu");
  EXPECT_EQ(find(cache, neg), "neg");
  EXPECT_EQ(find(cache, relu), "relu");
  EXPECT_EQ(find(cache, sin), "none");
}

TEST(ProgramCache, TheLeastRecentlyUsedLeavesFirst) {
  ProgramCache cache(2);
  insert(cache, trace_of("aten::neg"), kRoots, "neg");
  insert(cache, trace_of("aten::relu"), kRoots, "relu");
  EXPECT_EQ(find(cache, trace_of("aten::neg")), "neg");  // a use
  insert(cache, trace_of("aten::sin"), kRoots, "sin");
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_EQ(find(cache, trace_of("aten::relu")), "none");
  EXPECT_EQ(find(cache, trace_of("aten::neg")), "neg");
  EXPECT_EQ(find(cache, trace_of("aten::sin")), "sin");
}

std::shared_ptr<const Program> program_of_nodes(size_t count) {
  auto program = std::make_shared<Program>();
  Step step{true};
  for (size_t i = 0; i < count; ++i) step.graph.add_node("aten::neg", {}, kType);
  program->steps.push_back(std::move(step));
  return program;
}

TEST(ProgramCache, LargeProgramsLeaveByTheirBytes) {
  const uint64_t large = program_bytes(*program_of_nodes(1000));
  EXPECT_GT(large, 100 * program_bytes(*program_of_nodes(1)));
  ProgramCache cache(100, 3 * large);
  for (const char* op : {"aten::neg", "aten::relu", "aten::sin"}) insert(cache, trace_of(op), kRoots, program_of_nodes(1000));
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_LE(cache.bytes(), 3 * large);
  EXPECT_EQ(find(cache, trace_of("aten::neg")), "none");
  insert(cache, trace_of("aten::cos"), kRoots, program_of_nodes(10000));  // more than all may be, and yet what is to run now
  EXPECT_EQ(cache.size(), 1u);
  EXPECT_NE(cache.find(trace_of("aten::cos"), kRoots), nullptr);
  for (int i = 0; i < 50; ++i) insert(cache, trace_of(cat("aten::op", i)), kRoots, program_of_nodes(1));
  EXPECT_EQ(cache.size(), 50u);
  cache.clear();
  EXPECT_EQ(cache.bytes(), 0u);
}

TEST(ProgramCache, WhatCameFromTheDiskAndFailedAtFirstIsForgotten) {
  ProgramCache cache(4);
  const auto insert_saved = [&](const char* key) {
    auto program = std::make_shared<Program>();
    program->saved_as = key;
    insert(cache, trace_of("aten::neg"), kRoots, program);
    return program;
  };
  insert_saved("");
  cache.find(trace_of("aten::neg"), kRoots)->program->failed_at_first = true;
  EXPECT_NE(cache.find(trace_of("aten::neg"), kRoots), nullptr);  // compiled here: it would be the same again
  cache.clear();
  const auto loaded = insert_saved("key");
  EXPECT_NE(cache.find(trace_of("aten::neg"), kRoots), nullptr);
  loaded->failed_at_first = true;
  EXPECT_EQ(cache.find(trace_of("aten::neg"), kRoots), nullptr);
  EXPECT_EQ(cache.size(), 0u);
}

TEST(ProgramCache, EvictionAmongCollidingOnesTakesTheRightOne) {
  ProgramCache cache(2);
  Trace neg = trace_of("aten::neg"), relu = trace_of("aten::relu"), sin = trace_of("aten::sin");
  relu.hash = sin.hash = neg.hash;
  insert(cache, neg, kRoots, "neg");
  insert(cache, relu, kRoots, "relu");
  EXPECT_EQ(find(cache, neg), "neg");
  insert(cache, sin, kRoots, "sin");
  EXPECT_EQ(find(cache, neg), "neg");
  EXPECT_EQ(find(cache, relu), "none");
  EXPECT_EQ(find(cache, sin), "sin");
}

TEST(ProgramCache, ARunningProgramOutlivesItsEviction) {
  ProgramCache cache(1);
  const std::shared_ptr<const Program> running = insert(cache, trace_of("aten::neg"), kRoots, "neg")->program;
  insert(cache, trace_of("aten::relu"), kRoots, "relu");
  EXPECT_EQ(find(cache, trace_of("aten::neg")), "none");
  EXPECT_EQ(running->saved_as, "neg");
  EXPECT_EQ(running.use_count(), 1);
}

}  // namespace
}  // namespace ltc
