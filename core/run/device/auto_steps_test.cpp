#include "core/run/device/auto_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/report/metrics.h"
#include "core/run/device/repetition.h"
#include "core/run/device/trace_state.h"

namespace ltc {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A program as a device sees it. A line stands for an op of its own.
class AutoStepsTest : public testing::Test {
 protected:
  static constexpr LocationId kForward = 1, kLoss = 2, kUpdate = 3, kTail = 4, kOther = 5;
  static LocationId backward_of(LocationId line) { return line | kInBackward; }

  void op(LocationId line) {
    const CalledOp next{id_of(line), line};
    const bool is_behind_backward = state.seen != 0 && (line & kBackwardBits) == 0;
    if (state.trace.records.size() >= state.limit || is_behind_backward) {
      ++asked;
      const std::string_view reason = steps.ends_before(state, next);
      if (!reason.empty()) {
        end(reason);
      }
      state.limit = steps.next(state.trace.records.size());
    }
    if (steps.awaits_backward()) state.seen |= line & kInBackward;
    if (state.locations.empty()) state.first = next;
    const ValueId before = static_cast<ValueId>(state.trace.records.size()) - 1;
    const std::vector<ValueId> inputs(state.trace.records.empty() ? 0 : 1, before);
    add(state.trace.add_node(id_of(line), kNoType, kNoAttrs, inputs), line);
  }
  void param() {
    state.trace.add_param(kOpParam, kNoType);
    state.owners.push_back(nullptr);
  }
  void end(std::string_view reason) {
    lengths.push_back(state.locations.size());
    reasons.emplace_back(reason);
    steps.note_end(state, reason);
    state = TraceState{.limit = steps.next(0)};
  }
  void mark_step() { end(metrics::kMarkStep); }
  void forget() { lengths.clear(), reasons.clear(), asked = 0; }

  void forward_and_backward() {
    op(kForward), op(kLoss);
    op(backward_of(kLoss)), op(backward_of(kForward));
  }
  void optimizer(LocationId update = kUpdate, int ops = 3) {
    steps.optimizer_begins();
    for (int i = 0; i < ops; ++i) op(update);
    steps.optimizer_ends(state);
    if (steps.is_watching()) state.limit = 0;
  }
  void training_step() { forward_and_backward(), optimizer(); }

  static OpId id_of(LocationId line) { return 100 + (line & ~kInBackward) + (line & kInBackward ? 50 : 0); }
  void add(ValueId, LocationId line) {
    state.owners.push_back(nullptr);
    state.locations.push_back(line);
  }

  AutoSteps steps{true};
  TraceState state{.limit = steps.next(0)};
  std::vector<size_t> lengths;       // of the traces that have ended, in ops
  std::vector<std::string> reasons;  // why they have
  int asked = 0;
};

TEST_F(AutoStepsTest, ATrainingStepEndsWhereTheNextBegins) {
  for (int i = 0; i < 5; ++i) training_step(), op(kTail);
  EXPECT_THAT(lengths, ElementsAre(8, 8, 8, 8));
  EXPECT_THAT(reasons, Each(metrics::kOptimizerStep));
}

TEST_F(AutoStepsTest, OpsBeforeTheLoopBelongToItsFirstStep) {
  op(kOther);
  for (int i = 0; i < 4; ++i) training_step();
  EXPECT_THAT(lengths, ElementsAre(8, 7, 7));
}

TEST_F(AutoStepsTest, FewOpsOfAKnownStepAreLookedAt) {
  for (int i = 0; i < 3; ++i) training_step();
  forget();
  for (int i = 0; i < 10; ++i) training_step();
  EXPECT_THAT(lengths, SizeIs(10));
  EXPECT_EQ(asked, 20);  // the one behind the backward, and the first of the next step
}

TEST_F(AutoStepsTest, AKnownStepThatGoesOnEndsLater) {
  for (int i = 0; i < 3; ++i) training_step();
  forget();
  for (int i = 0; i < 3; ++i) {
    training_step(), op(kTail);
    training_step(), training_step();
  }
  training_step();
  EXPECT_THAT(lengths, ElementsAre(7, 8, 7, 7, 8, 7, 7, 8, 7, 7));
}

TEST_F(AutoStepsTest, ABackwardWithoutAnOptimizerEndsAStepToo) {
  for (int i = 0; i < 4; ++i) forward_and_backward(), op(kUpdate);
  EXPECT_THAT(lengths, ElementsAre(5, 5, 5));
  EXPECT_THAT(reasons, Each(metrics::kBackward));
}

TEST_F(AutoStepsTest, ALoopWithOpsBeforeItAndNoOptimizerEndsInItsSecondTurn) {
  op(kOther);
  for (int i = 0; i < 5; ++i) forward_and_backward(), op(kUpdate);
  EXPECT_THAT(lengths, ElementsAre(11, 5, 5));
}

TEST_F(AutoStepsTest, OptimizersOneBehindTheOtherEndOneStep) {
  for (int i = 0; i < 4; ++i) forward_and_backward(), optimizer(), optimizer();
  EXPECT_THAT(lengths, ElementsAre(10, 10, 10));
}

TEST_F(AutoStepsTest, AnOptimizersFirstStepMayBeLongerThanTheOthers) {
  forward_and_backward(), optimizer(kUpdate, 5);
  for (int i = 0; i < 4; ++i) training_step();
  EXPECT_THAT(lengths, ElementsAre(9, 7, 7, 7));
}

TEST_F(AutoStepsTest, AnOptimizerMayHaveTheOpsOfTheForward) {
  for (int i = 0; i < 4; ++i) forward_and_backward(), optimizer(kForward);
  EXPECT_THAT(lengths, ElementsAre(7, 7, 7));
  EXPECT_THAT(reasons, Each(metrics::kOptimizerStep));
}

TEST_F(AutoStepsTest, AReadWithinTheStepMovesItsEnd) {
  for (int i = 0; i < 4; ++i) {
    op(kForward), op(kLoss);
    end(metrics::kReadBarrier);
    op(backward_of(kLoss)), op(backward_of(kForward));
    optimizer();
  }
  EXPECT_THAT(lengths, ElementsAre(2, 7, 7, 7));
}

TEST_F(AutoStepsTest, AProgramThatMarksItsStepsIsLeftAlone) {
  for (int i = 0; i < 5; ++i) training_step(), op(kTail), mark_step();
  EXPECT_THAT(lengths, ElementsAre(8, 8, 8, 8, 8));
  EXPECT_THAT(reasons, Each(metrics::kMarkStep));
}

TEST_F(AutoStepsTest, AMarkedStepThatWasCutIsLeftAloneTheThirdTime) {
  const auto marked = [&] { training_step(), op(kForward), op(kTail), mark_step(); };
  for (int i = 0; i < 2; ++i) marked();
  EXPECT_THAT(lengths, ElementsAre(7, 2, 7, 2));
  forget();
  for (int i = 0; i < 5; ++i) marked();
  EXPECT_THAT(lengths, ElementsAre(9, 9, 9, 9, 9));
}

TEST_F(AutoStepsTest, AMarkAtTheEndOfAnEpochChangesNothing) {
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (int i = 0; i < 8; ++i) training_step();
    mark_step();
  }
  EXPECT_THAT(lengths, Each(7));
}

TEST_F(AutoStepsTest, ALoopWithoutABackwardEndsWhereItBeginsAnew) {
  op(kOther);
  for (int i = 0; i < 2000; ++i) op(kForward), op(kLoss), op(kTail);
  EXPECT_THAT(reasons, Each(metrics::kRepetition));
  ASSERT_GT(lengths.size(), 10u);
  lengths.erase(lengths.begin());
  EXPECT_THAT(lengths, Each(129));  // 43 turns, the fewest that have 128 ops
}

TEST_F(AutoStepsTest, AKnownTraceEndsWhereItsFirstOpComesAgain) {
  const auto turn = [&] {
    for (LocationId line = 1; line <= 300; ++line) op(line);
  };
  turn(), end(metrics::kReadBarrier);
  for (int i = 0; i < 4; ++i) turn();
  EXPECT_THAT(lengths, ElementsAre(300, 300, 300, 300));
}

TEST_F(AutoStepsTest, AShortTraceMayBeAPartOfMuch) {
  op(kForward), op(kLoss), end(metrics::kReadBarrier);
  forget();
  for (int i = 0; i < 20; ++i) op(kForward), op(kLoss);
  EXPECT_THAT(lengths, IsEmpty());
}

TEST_F(AutoStepsTest, LayersAreNoTurnsOfALoop) {
  for (int i = 0; i < 1000; ++i) {
    param();
    state.trace.add_node(id_of(kForward), kNoType, kNoAttrs,
                         std::vector<ValueId>{static_cast<ValueId>(state.trace.records.size()) - 1});
    add(0, kForward);
  }
  EXPECT_FALSE(find_repetition(state)) << "each reads weights of its own";
}

TEST_F(AutoStepsTest, WhatABackwardIsToReadIsNoTurnOfALoop) {
  for (int i = 0; i < 300; ++i) op(kForward), op(kLoss), op(kTail);
  ASSERT_TRUE(find_repetition(state));
  alignas(LazyStorage) static char somebody[sizeof(LazyStorage)];
  for (LazyStorage*& owner : state.owners) owner = reinterpret_cast<LazyStorage*>(somebody);
  EXPECT_FALSE(find_repetition(state));
}

TEST_F(AutoStepsTest, SwitchedOffItEndsNothing) {
  AutoSteps off(false);
  EXPECT_EQ(off.next(0), SIZE_MAX);
  EXPECT_FALSE(off.awaits_backward());
}

}  // namespace
}  // namespace ltc
