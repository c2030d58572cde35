// Collectives as they are put to NCCL, with a stub of it whose ranks are threads.
#include "cuda/nccl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <functional>
#include <thread>

#include "core/compile/lowering/abi_graph.h"
#include "core/ir/text.h"
#include "cuda/lowering.h"
#include "kernels/fuse/import.h"

namespace ltc::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// As the host has it for ranks of a process each.
class Store {
 public:
  Store() {
    table_.struct_size = sizeof table_;
    table_.store = this;
    table_.set = [](void* self, const ltc_string* key, const ltc_string* value) {
      auto& store = *static_cast<Store*>(self);
      const std::lock_guard guard(store.lock_);
      store.values_[std::string(plugin::view(*key))] = plugin::view(*value);
      store.changed_.notify_all();
      return true;
    };
    table_.get = [](void* self, const ltc_string* key, uint64_t timeout_ns, const ltc_sink* value) {
      auto& store = *static_cast<Store*>(self);
      std::unique_lock lock(store.lock_);
      const std::string name(plugin::view(*key));
      if (!store.changed_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), [&] { return store.values_.contains(name); }))
        return false;
      return value->write(value->context, store.values_[name].data(), store.values_[name].size());
    };
    table_.erase = [](void*, const ltc_string*) {};
  }
  const ltc_store* table() const { return &table_; }

 private:
  ltc_store table_{};
  std::mutex lock_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

class CudaCollectives : public testing::Test {
 protected:
  static constexpr int64_t kGroup = int64_t{1} << 32;

  ltc_group_args args(uint32_t rank, uint32_t size) {
    return {.struct_size = sizeof(ltc_group_args),
            .ext = nullptr,
            .number = kGroup,
            .rank = rank,
            .size = size,
            .timeout_ns = 200'000'000,
            .store = store_->table()};
  }

  // Runs `work` in a thread for each rank, in a group of all of them.
  void in_ranks(uint32_t size, const std::function<void(uint32_t, const Communicators&)>& work) {
    store_ = std::make_unique<Store>();  // one for each group
    met_ = 0;
    std::vector<std::thread> ranks;
    for (uint32_t rank = 0; rank < size; ++rank) {
      ranks.emplace_back([=, this] {
        Communicators all(api_.get());
        const auto group = all.join(args(rank, size));
        work(rank, all);
      });
    }
    for (std::thread& rank : ranks) rank.join();
  }

  // The results of the ranks, for what each gives.
  using Values = std::vector<float>;
  std::vector<Values> results_of(const kernels::Collective& what, const std::vector<Values>& given, size_t count) {
    std::vector<Values> results(given.size(), Values(count, -1));
    in_ranks(static_cast<uint32_t>(given.size()), [&](uint32_t rank, const Communicators& all) {
      const CUdeviceptr buffers[] = {reinterpret_cast<CUdeviceptr>(given[rank].data()),
                                     reinterpret_cast<CUdeviceptr>(results[rank].data()), 0};
      all.call(what)->launch(buffers, nullptr);
      meet(static_cast<int>(given.size()));
    });
    return results;
  }

  // A group ends for all when it ends for one.
  void meet(int count) {
    std::unique_lock lock(lock_);
    ++met_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return met_ == count; });
  }

  const std::unique_ptr<const NcclApi> api_ = NcclApi::load({{LTC_STUB_LIBRARIES_FOLDER}, {}});
  std::unique_ptr<Store> store_ = std::make_unique<Store>();
  std::mutex lock_;
  std::condition_variable changed_;
  int met_ = 0;
};

using kernels::Collective;
using enum kernels::CollectiveKind;

TEST_F(CudaCollectives, reduce) {
  const Collective sum{.kind = kAllReduce, .dtype = LTC_F32, .group = kGroup, .count = 2};
  EXPECT_THAT(results_of(sum, {{1, 2}, {10, 20}, {100, 200}}, 2),
              ElementsAre(Values{111, 222}, Values{111, 222}, Values{111, 222}));
  const auto with = [&](kernels::Reduction reduction) {
    Collective other = sum;
    other.reduction = reduction;
    return results_of(other, {{2, 5}, {3, 4}}, 2)[0];
  };
  EXPECT_EQ(with(kernels::Reduction::kProduct), (Values{6, 20}));
  EXPECT_EQ(with(kernels::Reduction::kMin), (Values{2, 4}));
  EXPECT_EQ(with(kernels::Reduction::kMax), (Values{3, 5}));
}

TEST_F(CudaCollectives, reduce_rows) {
  const Collective rows{.kind = kReduceScatter, .dtype = LTC_F32, .group = kGroup, .count = 2};
  EXPECT_THAT(results_of(rows, {{1, 2, 3, 4}, {10, 20, 30, 40}}, 2), ElementsAre(Values{11, 22}, Values{33, 44}));
}

TEST_F(CudaCollectives, copy) {
  const Collective broadcast{.kind = kBroadcast, .dtype = LTC_F32, .group = kGroup, .count = 2, .root = 1};
  EXPECT_THAT(results_of(broadcast, {{1, 2}, {3, 4}}, 2), ElementsAre(Values{3, 4}, Values{3, 4}));
  const Collective gather{.kind = kAllGather, .dtype = LTC_F32, .group = kGroup, .count = 2};
  EXPECT_THAT(results_of(gather, {{1, 2}, {3, 4}}, 4), ElementsAre(Values{1, 2, 3, 4}, Values{1, 2, 3, 4}));
}

TEST_F(CudaCollectives, exchange_parts) {
  std::vector<Values> results(2, Values(3, -1));
  const std::vector<Values> given = {{1, 2, 3}, {10, 20, 30}};
  in_ranks(2, [&](uint32_t rank, const Communicators& all) {
    // Rank 0 keeps one element and sends two, rank 1 sends two and keeps one.
    const std::vector<int64_t> to = rank == 0 ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{2, 1};
    const Collective what{.kind = kAllToAll, .dtype = LTC_F32, .group = kGroup, .count = 3, .to = to, .from = to};
    const CUdeviceptr buffers[] = {reinterpret_cast<CUdeviceptr>(given[rank].data()),
                                   reinterpret_cast<CUdeviceptr>(results[rank].data()), 0};
    all.call(what)->launch(buffers, nullptr);
    meet(2);
  });
  EXPECT_THAT(results, ElementsAre(Values{1, 10, 20}, Values{2, 3, 30}));
}

TEST_F(CudaCollectives, fail_where_a_rank_does_not_join) {
  Communicators all(api_.get());
  try {
    all.join(args(1, 2));
    FAIL() << "it joined a group without rank 0";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().code, LTC_TIMEOUT);
  }
  Communicators without(nullptr);
  try {
    without.join(args(0, 2));
    FAIL() << "it joined a group without NCCL";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().code, LTC_UNSUPPORTED);
  }
}

// Work that is never over.
class Endless : public device::Event {
 public:
  bool is_over() override { return false; }
  void wait() override { FAIL() << "it would wait for ever"; }
};
class Over : public device::Event {
 public:
  bool is_over() override { return true; }
  void wait() override {}
};

ltc_code code_of(const std::function<void()>& work) {
  try {
    work();
    return 0;
  } catch (const Failure& failure) {
    return failure.error().code;
  }
}

TEST_F(CudaCollectives, fail_where_a_rank_does_not_take_part_in_time) {
  in_ranks(2, [&](uint32_t rank, const Communicators& all) {
    if (rank == 0) {
      const auto communicator = all.find(kGroup);
      CollectiveEvent event(std::make_shared<Endless>(), {communicator});
      EXPECT_FALSE(event.is_over());
      EXPECT_EQ(code_of([&] { event.wait(); }), LTC_TIMEOUT);
      EXPECT_EQ(code_of([&] { CollectiveEvent(std::make_shared<Over>(), {communicator}).wait(); }), LTC_CANCELLED);
      const Collective sum{.kind = kAllReduce, .dtype = LTC_F32, .group = kGroup, .count = 1};
      const CUdeviceptr buffers[3] = {};
      EXPECT_EQ(code_of([&] { all.call(sum)->launch(buffers, nullptr); }), LTC_CANCELLED);
    }
    meet(2);
  });
}

TEST_F(CudaCollectives, of_a_good_group_are_over_with_their_work) {
  in_ranks(2, [&](uint32_t, const Communicators& all) {
    EXPECT_EQ(code_of([&] { CollectiveEvent(std::make_shared<Over>(), {all.find(kGroup)}).wait(); }), 0);
    meet(2);
  });
  const Communicators none(api_.get());
  const Collective sum{.kind = kAllReduce, .dtype = LTC_F32, .group = kGroup, .count = 1};
  const CUdeviceptr buffers[3] = {};
  EXPECT_EQ(code_of([&] { none.call(sum)->launch(buffers, nullptr); }), LTC_CANCELLED) << "it is in no group";
}

// ---- in a graph

constexpr char kStep[] = R"(graph(%0: f32[4,3], %1: f32[2,3]) {
  %2: f32[4,3] = aten::neg(%0)
  %3: f32[4,3], %4: u8[1] = ltc_c10d::all_reduce(%2, none) {op="max", group=4294967297}
  %5: f32[2,3], %6: u8[1] = ltc_c10d::broadcast(%1, %4) {root=1, group=4294967297}
  %7: f32[2,2,3], %8: u8[1] = ltc_c10d::all_gather(%5, %6) {ranks=2, group=4294967297}
  %9: f32[2,3], %10: u8[1] = ltc_c10d::reduce_scatter(%7, %8) {op="sum", group=4294967297}
  %11: f32[3,3], %12: u8[1] = ltc_c10d::all_to_all(%3, %10) {to=[1,3], from_=[1,2], group=4294967297}
  %13: f32[3,3] = aten::abs(%11)
  return %9, %13, %12 })";

TEST(CudaCollectiveGraphs, are_calls_of_the_library_in_order) {
  const ltc::Graph graph = parse(kStep);
  const AbiGraph abi(graph);
  const device::Lowering lowering = lowering_for({});
  const plugin::Graph given(*abi.get());
  for (size_t i = 0; i < given.size(); ++i) EXPECT_TRUE(kernels::can_compute(given.node(i), lowering.options.extras)) << i;
  const device::CompiledPlan plan = device::compile_plan(kernels::make_plan(*abi.get(), lowering.options), lowering);
  std::vector<Collective> expected = {
      {.kind = kAllReduce, .dtype = LTC_F32, .group = 4294967297, .count = 12, .reduction = kernels::Reduction::kMax},
      {.kind = kBroadcast, .dtype = LTC_F32, .group = 4294967297, .count = 6, .root = 1},
      {.kind = kAllGather, .dtype = LTC_F32, .group = 4294967297, .count = 6},
      {.kind = kReduceScatter, .dtype = LTC_F32, .group = 4294967297, .count = 6},
      {.kind = kAllToAll, .dtype = LTC_F32, .group = 4294967297, .count = 12, .to = {3, 9}, .from = {3, 6}}};
  std::vector<Collective> found;
  for (const device::Launch& launch : plan.launches) {
    if (launch.library != LTC_NONE) found.push_back(std::get<Collective>(plan.library[launch.library]));
  }
  EXPECT_EQ(found, expected);
  EXPECT_THAT(plan.text(), HasSubstr("all_reduce: 12 elements in group 4294967297, by the library"));

  std::vector<std::string> binaries(plan.sources.size(), "code");
  const std::string bytes = device::write_compiled_plan(plan, binaries, "device");
  EXPECT_EQ(device::read_compiled_plan(bytes, binaries, "device").library, plan.library);
}

TEST(CudaCollectiveGraphs, in_other_forms_are_left_to_the_host) {
  const auto takes = [](const std::string& node, const Features& features = {}) {
    const ltc::Graph graph = parse("graph(%0: " + node + "\nreturn %1, %2 }");
    const AbiGraph abi(graph);
    const plugin::Graph given(*abi.get());
    return kernels::can_compute(given.node(0), lowering_for(features).options.extras);
  };
  const std::string good = "f32[4]) { %1: f32[4], %2: u8[1] = ltc_c10d::all_reduce(%0, none) {op=\"sum\", group=1}";
  EXPECT_TRUE(takes(good));
  EXPECT_FALSE(takes(good, features_without("nccl")));
  EXPECT_FALSE(takes("f32[4]) { %1: f32[4], %2: u8[1] = ltc_c10d::all_reduce(%0, none) {op=\"bxor\", group=1}"));
  EXPECT_FALSE(takes("i16[4]) { %1: i16[4], %2: u8[1] = ltc_c10d::all_reduce(%0, none) {op=\"sum\", group=1}"));
  EXPECT_TRUE(takes("bool[4]) { %1: bool[4], %2: u8[1] = ltc_c10d::broadcast(%0, none) {root=0, group=1}"));
  EXPECT_FALSE(takes("f32[4]) { %1: f32[4], %2: u8[1] = ltc_c10d::all_reduce(%0, none) {op=\"sum\", group=1, more=2}"));
}

}  // namespace
}  // namespace ltc::cuda
