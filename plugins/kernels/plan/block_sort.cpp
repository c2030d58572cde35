#include "kernels/plan/block_sort.h"

#include <algorithm>

#include "kernels/graph/dtype.h"
#include "kernels/plan/sort.h"
#include "kernels/print/formula.h"

namespace ltc::kernels {
namespace {

constexpr int64_t kSortThreads = 256;
// Elements of a thread: an odd number, so that neighbours meet different banks of the block's memory.
constexpr int64_t kItems = kSortTile / kSortThreads;
static_assert(kItems % 2 == 1);

// The block's memory is cut in segments: rows, or one tile of a row. `own` and `place` are the thread's elements of its segment
// and where they came from.
constexpr std::string_view kCommon = R"(  constexpr i32 kSegments = 256 / kLanes, kSpan = kLanes * kItems;
  __shared__ T keys[256 * kItems];
  __shared__ i32 places[256 * kItems];
  const i32 lane = (i32)threadIdx.x % kLanes, base = (i32)threadIdx.x / kLanes * kSpan, first = base + lane * kItems;
  const ix tiles = (length + kSpan - 1) / kSpan;
  T own[kItems];
  i32 place[kItems];
  // How many of the first `at` elements of two runs merged are of the first run.
  const auto path = [](const T* a, auto a_count, const T* b, auto b_count, auto at) {
    auto low = at > b_count ? at - b_count : 0, high = at < a_count ? at : a_count;
    while (low < high) {
      const auto middle = (low + high) / 2;
      const T p = b[at - 1 - middle], q = a[middle];
      if (BEFORE) high = middle;
      else low = middle + 1;
    }
    return low;
  };
  // The thread's part of the runs [begin, middle) and [middle, end) of the segment, merged.
  const auto merge = [&](i32 begin, i32 middle, i32 end, i32 mine) {
    const i32 at = lane * kItems - begin;
    const i32 taken = mine ? path(keys + base + begin, middle - begin, keys + base + middle, end - middle, at) : 0;
    i32 a = base + begin + taken, b = base + middle + at - taken;
#pragma unroll
    for (i32 k = 0; k < kItems; ++k) {
      if (k >= mine) continue;
      bool second = a == base + middle;
      if (!second && b < base + end) {
        const T p = keys[b], q = keys[a];
        second = BEFORE;
      }
      own[k] = keys[second ? b : a];
      place[k] = places[second ? b++ : a++];
    }
  };
  const auto put_back = [&](i32 mine) {
#pragma unroll
    for (i32 k = 0; k < kItems; ++k) {
      if (k < mine) keys[first + k] = own[k], places[first + k] = place[k];
    }
    __syncthreads();
  };
  // Calls with each element of the rows: its row, its place there, and that in the block's memory.
  const auto for_each = [&](auto call) {
    for (i32 k = (i32)threadIdx.x; k < 256 * kItems; k += 256) {
      const i32 segment = kColumns ? k % kSegments : k / kSpan, element = kColumns ? k / kSegments : k % kSpan;
      const ix tile = (ix)blockIdx.x * kSegments + segment, at = tile % tiles * kSpan + element;
      if (tile / tiles < rows && at < length) call(tile / tiles, at, segment * kSpan + element);
    }
  };
)";

// Each thread sorts its own by swaps of neighbours, then runs in the block's memory are merged.
constexpr std::string_view kTile = R"(  for_each([&](ix row, ix at, i32 to) {
    keys[to] = from[row / stride * length * stride + row % stride + at * stride];
    places[to] = (i32)at;
  });
  __syncthreads();
  const ix tile = (ix)blockIdx.x * kSegments + (i32)threadIdx.x / kLanes;
  const ix rest = tile / tiles < rows ? length - tile % tiles * kSpan : 0;
  const i32 count = rest < kSpan ? (i32)rest : kSpan, behind = count - lane * kItems;
  const i32 mine = behind < 0 ? 0 : behind < kItems ? behind : kItems;
#pragma unroll
  for (i32 k = 0; k < kItems; ++k) own[k] = keys[first + k], place[k] = places[first + k];
#pragma unroll
  for (i32 round = 0; round < kItems; ++round) {
#pragma unroll
    for (i32 k = round % 2; k + 1 < kItems; k += 2) {
      const T p = own[k + 1], q = own[k];
      if (k + 1 < mine && (BEFORE)) {
        const i32 place_of_q = place[k];
        own[k] = p, own[k + 1] = q;
        place[k] = place[k + 1], place[k + 1] = place_of_q;
      }
    }
  }
  put_back(mine);
  for (i32 run = kItems; run < kSpan; run *= 2) {
    const i32 begin = lane * kItems / (2 * run) * (2 * run);
    merge(begin, begin + run < count ? begin + run : count, begin + 2 * run < count ? begin + 2 * run : count, mine);
    __syncthreads();
    put_back(mine);
  }
)";

// A block is a tile of what two runs become. Where its part of each begins and ends, two of the threads find.
constexpr std::string_view kMerge = R"(  __shared__ ix cuts[2];
  const ix tile = (ix)blockIdx.x % tiles * kSpan, begin = tile / (2 * run) * (2 * run);
  const ix middle = begin + run < length ? begin + run : length, end = middle + run < length ? middle + run : length;
  const T* a = from + (ix)blockIdx.x / tiles * length + begin;
  const i32* a_places = from_places + (ix)blockIdx.x / tiles * length + begin;
  const ix at = tile - begin, until = at + kSpan < end - begin ? at + kSpan : end - begin;
  if (threadIdx.x < 2) cuts[threadIdx.x] = path(a, middle - begin, a + (middle - begin), end - middle, threadIdx.x ? until : at);
  __syncthreads();
  const i32 count = (i32)(until - at), a_count = (i32)(cuts[1] - cuts[0]), behind = count - lane * kItems;
  const i32 mine = behind < 0 ? 0 : behind < kItems ? behind : kItems;
  for (i32 k = (i32)threadIdx.x; k < count; k += 256) {
    const ix element = k < a_count ? cuts[0] + k : middle - begin + (at - cuts[0]) + (k - a_count);
    keys[k] = a[element];
    places[k] = a_places[element];
  }
  __syncthreads();
  merge(0, a_count, count, mine);
  __syncthreads();
  put_back(mine);
)";

constexpr std::string_view kStoreRuns = R"(  for_each([&](ix row, ix at, i32 here) {
    to[row * length + at] = keys[here];
    to_places[row * length + at] = places[here];
  });
)";
constexpr std::string_view kStoreResult = R"(  for_each([&](ix row, ix at, i32 here) {
    const ix element = row / stride * length * stride + row % stride + at * stride;
    to[element] = keys[here];
    to_places[element] = places[here];
  });
)";

// Threads that share a row.
int64_t lanes_of(int64_t length) {
  int64_t lanes = 1;
  while (lanes < kSortThreads && lanes * kItems < length) lanes *= 2;
  return lanes;
}

}  // namespace

Source render_sort_pass(const SortPass& pass, const Dialect& dialect) {
  const SortKernel& sort = pass.of;
  const bool merges = pass.run > 0;
  const int64_t lanes = lanes_of(sort.length), span = lanes * kItems, segments = kSortThreads / lanes;
  const int64_t tiles = sort.rows * ((sort.length + span - 1) / span);
  const std::string type(facts(sort.dtype).name);
  const auto integer = [](const char* name, int64_t value) {
    return "  constexpr i32 " + std::string(name) + " = " + std::to_string(value) + ";\n";
  };
  std::string body = "  typedef " + type + " T;\n" + integer("kItems", kItems) + integer("kLanes", lanes) +
                     integer("kColumns", sort.stride > 1) + std::string(kCommon);
  body += merges ? kMerge : kTile;
  body += pass.last ? kStoreResult : kStoreRuns;
  constexpr std::string_view kWord = "BEFORE";
  const std::string before = stands_before(sort);
  for (size_t at = 0; (at = body.find(kWord, at)) != body.npos; at += before.size()) body.replace(at, kWord.size(), before);
  Dialect frame = dialect;
  frame.body = ") {\n";
  const std::string arguments = "const " + type + "* from, " + (merges ? "const i32* from_places, " : "") + type + "* to, " +
                                (pass.last ? "i64*" : "i32*") +
                                " to_places, const ix items, const ix rows, const ix length, const ix stride, const ix run";
  const bool long_index = sort.rows * sort.length > INT32_MAX / 2;
  return {framed(arguments, body, long_index, frame),
          {(tiles + segments - 1) / segments * kSortThreads, sort.rows, sort.length, sort.stride, pass.run},
          long_index,
          kSortThreads};
}

}  // namespace ltc::kernels
