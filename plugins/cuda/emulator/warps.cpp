// Instructions of a warp: shuffles, votes, matches, and its meeting.
#include <algorithm>

#include "cuda/emulator/table.h"
#include "cuda/emulator/values.h"

namespace ltc::emulator {
namespace {

// All members know behind the meeting what was done before it.
void join_clocks(Warp& warp, uint32_t members) {
  uint16_t seen[Warp::kLanes] = {};
  each_lane(warp, members, [&](const Thread& t) {
    for (unsigned j = 0; j < Warp::kLanes; ++j) seen[j] = std::max(seen[j], warp.clocks[t.lane][j]);
  });
  each_lane(warp, members, [&](const Thread& t) {
    std::copy(std::begin(seen), std::end(seen), warp.clocks[t.lane]);
    ++warp.clocks[t.lane][t.lane];
  });
}

template <Meeting kMeeting, int kMask>
void meet(Thread& t, const Instruction& in) {
  wait_for_warp(t, get<uint32_t>(t, in, kMask + in.pair), kMeeting);
}

enum class Shuffle { kUp, kDown, kButterfly, kIndex };

// The lane to read, and whether it is within the segment.
std::pair<uint32_t, bool> source(Shuffle shuffle, uint32_t lane, uint32_t b, uint32_t c) {
  const uint32_t by = b & 31, clamp = c & 31, mask = c >> 8 & 31;
  const uint32_t last = (lane & mask) | (clamp & ~mask & 31), first = lane & mask;
  switch (shuffle) {
    case Shuffle::kUp: return {lane - by, static_cast<int>(lane) - static_cast<int>(by) >= static_cast<int>(last)};
    case Shuffle::kDown: return {lane + by, lane + by <= last};
    case Shuffle::kButterfly: return {lane ^ by, (lane ^ by) <= last};
    default: return {first | (by & ~mask & 31), (first | (by & ~mask & 31)) <= last};
  }
}

template <Shuffle kShuffle>
void shuffle(Warp& warp, uint32_t members) {
  uint32_t values[Warp::kLanes] = {};
  each_lane(warp, members, [&](const Thread& t) { values[t.lane] = get<uint32_t>(t, *t.at, 1 + t.at->pair); });
  each_lane(warp, members, [&](Thread& t) {
    const Instruction& in = *t.at;
    const auto [from, inside] = source(kShuffle, t.lane, get<uint32_t>(t, in, 2 + in.pair), get<uint32_t>(t, in, 3 + in.pair));
    const uint32_t lane = inside ? from : t.lane;
    if (!(members >> lane & 1)) t.fail(CUDA_ERROR_LAUNCH_FAILED, "reads lane " + std::to_string(lane) + ", which is not there");
    if (in.pair) set_predicate(t, in, 1, inside);
    set<uint32_t>(t, in, 0, values[lane]);
  });
}

enum class Vote { kAll, kAny, kUniform, kBallot };

template <Vote kVote>
void vote(Warp& warp, uint32_t members) {
  uint32_t ballot = 0;
  each_lane(warp, members, [&](const Thread& t) { ballot |= uint32_t{holds(t, *t.at, 1)} << t.lane; });
  const bool all = ballot == members, any = ballot != 0;
  each_lane(warp, members, [&](Thread& t) {
    if (kVote == Vote::kBallot) return set<uint32_t>(t, *t.at, 0, ballot);
    set_predicate(t, *t.at, 0, kVote == Vote::kAll ? all : kVote == Vote::kAny ? any : all || !any);
  });
}

template <typename T>
void match_any(Warp& warp, uint32_t members) {
  each_lane(warp, members, [&](Thread& t) {
    uint32_t same = 0;
    each_lane(warp, members,
              [&](const Thread& other) { same |= uint32_t{get<T>(other, *other.at, 1) == get<T>(t, *t.at, 1)} << other.lane; });
    set<uint32_t>(t, *t.at, 0, same);
  });
}

}  // namespace

void add_warps(Table& table) {
  table.add("bar.warp.sync", 1, meet<join_clocks, 0>);
  table.add("shfl.sync.up.b32", 5, 6, meet<shuffle<Shuffle::kUp>, 4>);
  table.add("shfl.sync.down.b32", 5, 6, meet<shuffle<Shuffle::kDown>, 4>);
  table.add("shfl.sync.bfly.b32", 5, 6, meet<shuffle<Shuffle::kButterfly>, 4>);
  table.add("shfl.sync.idx.b32", 5, 6, meet<shuffle<Shuffle::kIndex>, 4>);
  table.add("vote.sync.all.pred", 3, meet<vote<Vote::kAll>, 2>);
  table.add("vote.sync.any.pred", 3, meet<vote<Vote::kAny>, 2>);
  table.add("vote.sync.uni.pred", 3, meet<vote<Vote::kUniform>, 2>);
  table.add("vote.sync.ballot.b32", 3, meet<vote<Vote::kBallot>, 2>);
  table.add("match.any.sync.b32", 3, meet<match_any<uint32_t>, 2>);
  table.add("match.any.sync.b64", 3, meet<match_any<uint64_t>, 2>);
}

}  // namespace ltc::emulator
