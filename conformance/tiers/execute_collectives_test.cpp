// The execute tier: groups of processes (ltc/collective.h). Here the ranks are devices of one process, with a thread each.
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "conformance/kit/in_threads.h"
#include "conformance/tiers/execute_fixture.h"
#include "ltc/collective.h"
#include "ltc/entry.h"

namespace ltc::conformance {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kPatience = 20s;  // far above what an abort or a short timeout takes

// Where the ranks leave words for each other.
class Store {
 public:
  Store() {
    table_.store = this;
    table_.set = [](void* self, const ltc_string* key, const ltc_string* value) {
      auto& store = *static_cast<Store*>(self);
      const std::lock_guard lock(store.mutex_);
      store.values_[text(*key)] = text(*value);
      return true;
    };
    table_.get = [](void* self, const ltc_string* key, uint64_t timeout_ns, const ltc_sink* value) {
      auto& store = *static_cast<Store*>(self);
      const auto begin = Clock::now();
      do {
        std::string found;
        if (store.find(text(*key), found)) return value->write(value->context, found.data(), found.size());
        std::this_thread::sleep_for(1ms);
      } while (static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now() - begin).count()) < timeout_ns);
      return false;
    };
    table_.erase = [](void* self, const ltc_string* key) {
      auto& store = *static_cast<Store*>(self);
      const std::lock_guard lock(store.mutex_);
      store.values_.erase(text(*key));
    };
  }
  const ltc_store* table() const { return &table_; }
  size_t size() {
    const std::lock_guard lock(mutex_);
    return values_.size();
  }

 private:
  static std::string text(ltc_string given) { return {given.data ? given.data : "", given.data ? given.size : 0}; }
  bool find(const std::string& key, std::string& value) {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    if (found != values_.end()) value = found->second;
    return found != values_.end();
  }

  ltc_store table_ = host::sized<ltc_store>();
  std::mutex mutex_;
  std::map<std::string, std::string> values_;
};

class ExecuteCollectives : public Execute {
 protected:
  void SetUp() override {
    Execute::SetUp();
    if (IsSkipped()) return;
    const ltc_extension* listed = ltc_find_extension(api().ext, LTC_EXTENSION_COLLECTIVE);
    if (!listed) LTC_NOT_APPLICABLE("the plugin does not list the extension ltc/collective.h");
    ASSERT_GE(listed->struct_size, sizeof(ltc_collectives)) << "its entry of the list is no ltc_collectives";
    functions_ = reinterpret_cast<const ltc_collectives*>(listed);
    ASSERT_TRUE(functions_->group_create && functions_->group_abort && functions_->group_destroy);
    LTC_NEEDS_THREADS();
    const uint32_t ordinal = instance().describe().device_count > 1 ? 1 : 0;
    if (ordinal == 0) LTC_NEEDS_SECOND_OPEN();
    others_.push_back(std::make_unique<Device>(instance(), ordinal));
  }
  void TearDown() override {
    leave();
    others_.clear();
    Execute::TearDown();
  }

  Device& of(int rank) { return rank == 0 ? device() : *others_[static_cast<size_t>(rank) - 1]; }
  // As a process would have it: never given twice.
  int64_t number(int rank) const { return first_ + rank; }

  Failure create(int rank, std::chrono::nanoseconds timeout) {
    auto args = host::sized<ltc_group_args>();
    args.number = number(rank);
    args.rank = static_cast<uint32_t>(rank);
    args.size = static_cast<uint32_t>(groups_.size());
    args.timeout_ns = static_cast<uint64_t>(timeout.count());
    args.store = store_.table();
    return Instance::asked("group_create",
                           [&] { return functions_->group_create(of(rank).get(), &args, &groups_[static_cast<size_t>(rank)]); });
  }
  // False where the plugin says that it cannot, here.
  bool join(std::chrono::nanoseconds timeout = kPatience, int ranks = 2) {
    static int64_t next = int64_t{1} << 33;
    first_ = next;
    next += ranks;
    groups_.assign(static_cast<size_t>(ranks), nullptr);
    std::vector<Failure> failures(groups_.size());
    in_threads(ranks, [&](int rank) { failures[static_cast<size_t>(rank)] = create(rank, timeout); });
    const bool cannot = std::ranges::any_of(failures, [](const Failure& one) { return one.code == LTC_UNSUPPORTED; });
    for (const Failure& failure : failures) {
      if (!cannot) {
        EXPECT_OK(failure);
      }
    }
    return !cannot && !std::ranges::count(groups_, nullptr);
  }
  void leave() {
    for (ltc_group*& group : groups_) {
      if (group) Instance::ended("group_destroy", [&] { functions_->group_destroy(std::exchange(group, nullptr)); });
    }
  }
  void abort(int rank) {
    Instance::ended("group_abort", [&] { functions_->group_abort(groups_[static_cast<size_t>(rank)]); });
  }

  // "%1, %2 = OP(%0, none) {ATTRS, group=N}", of an f32 input and result of these types.
  std::string graph(int rank, const std::string& op, const std::string& in, const std::string& out, const std::string& attrs) {
    return "graph(%0: " + in + ") { %1: " + out + ", %2: u8[1] = ltc_c10d::" + op + "(%0, none) {" + attrs +
           ", group=" + std::to_string(number(rank)) + "} return %1, %2 }";
  }
  std::string sum(int rank) { return graph(rank, "all_reduce", "f32[2]", "f32[2]", "op=\"sum\""); }

  // The result of each rank's run on what it gives; one where the plugin leaves the op to the host.
  using Results = std::vector<Floats>;
  Results run(const std::function<std::string(int)>& graph_of, const std::vector<Floats>& given, const Sizes& in,
              const std::vector<Sizes>& out) {
    const int ranks = static_cast<int>(given.size());
    for (int rank = 0; rank < ranks; ++rank) {
      if (std::ranges::count(claims_of(rank, graph_of(rank)), 0u)) return {};
    }
    Results results(given.size());
    in_threads(ranks, [&](int rank) {
      const Executable executable = of(rank).build(graph_of(rank));
      const Buffer input = of(rank).upload(Array::floats(in, given[static_cast<size_t>(rank)]));
      const auto outputs = of(rank).run({.executable = executable, .inputs = {input.get()}, .output_count = 2});
      results[static_cast<size_t>(rank)] =
          of(rank).download(outputs[0], DType::kF32, out[static_cast<size_t>(rank) % out.size()]).values<float>();
    });
    return results;
  }
  std::vector<uint32_t> claims_of(int rank, const std::string& text) {
    const Graph graph = parse(text);
    const AbiGraph abi(graph);
    std::vector<uint32_t> clusters;
    EXPECT_OK(of(rank).claims(*abi.get(), clusters));
    return clusters;
  }

  // How a collective of rank 0 alone ends.
  Failure alone() {
    const Executable executable = device().build(sum(0));
    const Buffer input = device().upload(Array::floats({2}, {1, 2}));
    const auto run = device().submit({.executable = executable, .inputs = {input.get()}, .output_count = 2});
    return run.submitted ? run.submitted : device().finish(run.done);
  }
  static void expect_given_up(const Failure& failure) {
    EXPECT_TRUE(failure.code == LTC_TIMEOUT || failure.code == LTC_CANCELLED) << "it ended so: " << failure;
  }

  const ltc_collectives* functions_ = nullptr;
  std::vector<std::unique_ptr<Device>> others_;
  Store store_;
  std::vector<ltc_group*> groups_ = {nullptr, nullptr};
  int64_t first_ = 0;
};

#define LTC_NEEDS_GROUP(...) \
  if (!join(__VA_ARGS__)) LTC_UNSUPPORTED_BY_PLUGIN("these two devices join no group")
#define LTC_NEEDS_OP(results) \
  if ((results).empty()) LTC_UNSUPPORTED_BY_PLUGIN("leaves the op to the host")

TEST_F(ExecuteCollectives, reduce_over_all_ranks) {
  LTC_NEEDS_GROUP();
  const auto with = [&](const std::string& op) {
    return run([&](int rank) { return graph(rank, "all_reduce", "f32[3]", "f32[3]", "op=\"" + op + "\""); },
               {{1, 5, -2}, {3, 4, -7}}, {3}, {{3}});
  };
  const Results sums = with("sum");
  LTC_NEEDS_OP(sums);
  EXPECT_EQ(sums, (Results{{4, 9, -9}, {4, 9, -9}}));
  if (const Results of = with("product"); !of.empty()) {
    EXPECT_EQ(of, (Results{{3, 20, 14}, {3, 20, 14}}));
  }
  if (const Results of = with("min"); !of.empty()) {
    EXPECT_EQ(of, (Results{{1, 4, -7}, {1, 4, -7}}));
  }
  if (const Results of = with("max"); !of.empty()) {
    EXPECT_EQ(of, (Results{{3, 5, -2}, {3, 5, -2}}));
  }
}

TEST_F(ExecuteCollectives, reductions_have_the_same_bits_at_all_ranks) {
  const uint32_t count = instance().describe().device_count;
  if (count < 3) LTC_NEEDS_SECOND_OPEN();
  others_.push_back(std::make_unique<Device>(instance(), count < 3 ? 0 : 2));
  LTC_NEEDS_GROUP(kPatience, 3);  // two have one order only
  std::vector<Floats> given(3, Floats(257));
  for (size_t rank = 0; rank < 3; ++rank) {
    for (size_t i = 0; i < 257; ++i) given[rank][i] = 1.0f / static_cast<float>(3 * i + rank + 1);
  }
  const Results results =
      run([&](int rank) { return graph(rank, "all_reduce", "f32[257]", "f32[257]", "op=\"sum\""); }, given, {257}, {{257}});
  LTC_NEEDS_OP(results);
  EXPECT_EQ(results[1], results[0]);
  EXPECT_EQ(results[2], results[0]);
}

TEST_F(ExecuteCollectives, copy_between_ranks) {
  LTC_NEEDS_GROUP();
  for (int root = 0; root < 2; ++root) {
    const Results results =
        run([&](int rank) { return graph(rank, "broadcast", "f32[2]", "f32[2]", "root=" + std::to_string(root)); },
            {{1, 2}, {3, 4}}, {2}, {{2}});
    LTC_NEEDS_OP(results);
    EXPECT_EQ(results, root == 0 ? (Results{{1, 2}, {1, 2}}) : (Results{{3, 4}, {3, 4}}));
  }
  const Results gathered =
      run([&](int rank) { return graph(rank, "all_gather", "f32[2]", "f32[2,2]", "ranks=2"); }, {{1, 2}, {3, 4}}, {2}, {{2, 2}});
  LTC_NEEDS_OP(gathered);
  EXPECT_EQ(gathered, (Results{{1, 2, 3, 4}, {1, 2, 3, 4}}));
}

TEST_F(ExecuteCollectives, reduce_each_its_row) {
  LTC_NEEDS_GROUP();
  const Results results = run([&](int rank) { return graph(rank, "reduce_scatter", "f32[2,2]", "f32[2]", "op=\"sum\""); },
                              {{1, 2, 3, 4}, {10, 20, 30, 40}}, {2, 2}, {{2}});
  LTC_NEEDS_OP(results);
  EXPECT_EQ(results, (Results{{11, 22}, {33, 44}}));
}

TEST_F(ExecuteCollectives, exchange_rows) {
  LTC_NEEDS_GROUP();
  // Rank 0 keeps none and sends three; rank 1 sends one and keeps two.
  const auto graph_of = [&](int rank) {
    return rank == 0 ? graph(0, "all_to_all", "f32[3,1]", "f32[1,1]", "to=[0,3], from_=[0,1]")
                     : graph(1, "all_to_all", "f32[3,1]", "f32[5,1]", "to=[1,2], from_=[3,2]");
  };
  const Results results = run(graph_of, {{1, 2, 3}, {10, 20, 30}}, {3, 1}, {{1, 1}, {5, 1}});
  LTC_NEEDS_OP(results);
  EXPECT_EQ(results, (Results{{10}, {1, 2, 3, 20, 30}}));
}

TEST_F(ExecuteCollectives, take_part_where_nobody_wants_the_result) {
  LTC_NEEDS_GROUP();
  const auto graph_of = [&](int rank) {
    return rank == 0 ? sum(0)
                     : "graph(%0: f32[2]) { %1: f32[2], %2: u8[1] = ltc_c10d::all_reduce(%0, none) {op=\"sum\", group=" +
                           std::to_string(number(1)) + "} return %2 }";
  };
  if (std::ranges::count(claims(sum(0)), 0u)) LTC_UNSUPPORTED_BY_PLUGIN("leaves the op to the host");
  Floats result;
  in_threads(2, [&](int rank) {
    const Executable executable = of(rank).build(graph_of(rank));
    const Buffer input = of(rank).upload(Array::floats({2}, {1, 2}));
    const auto outputs =
        of(rank).run({.executable = executable, .inputs = {input.get()}, .output_count = rank == 0 ? size_t{2} : size_t{1}});
    if (rank == 0) result = floats(outputs[0], {2});
  });
  EXPECT_EQ(result, (Floats{2, 4}));
}

TEST_F(ExecuteCollectives, keep_their_order) {
  LTC_NEEDS_GROUP();
  const auto graph_of = [&](int rank) {
    const std::string group = ", group=" + std::to_string(number(rank)) + "}";
    return "graph(%0: f32[2]) { %1: f32[2], %2: u8[1] = ltc_c10d::all_reduce(%0, none) {op=\"sum\"" + group +
           "%3: f32[2], %4: u8[1] = ltc_c10d::broadcast(%0, %2) {root=1" + group +
           "%5: f32[2], %6: u8[1] = ltc_c10d::all_reduce(%1, %4) {op=\"sum\"" + group + "return %5, %6 }";
  };
  for (int i = 0; i < 20; ++i) {
    const Results results = run(graph_of, {{1, 2}, {3, 4}}, {2}, {{2}});
    LTC_NEEDS_OP(results);
    EXPECT_EQ(results, (Results{{8, 12}, {8, 12}}));
  }
}

TEST_F(ExecuteCollectives, leave_nothing_in_the_store_for_ever) {
  LTC_NEEDS_GROUP();
  const auto once = [&] { return run([&](int rank) { return sum(rank); }, {{1, 2}, {3, 4}}, {2}, {{2}}); };
  LTC_NEEDS_OP(once());
  for (int i = 0; i < 5; ++i) once();
  const size_t before = store_.size();
  for (int i = 0; i < 20; ++i) once();
  EXPECT_LE(store_.size(), before + 5) << "entries are left for each collective";
}

TEST_F(ExecuteCollectives, of_groups_that_the_device_is_not_in_are_not_claimed) {
  LTC_NEEDS_GROUP();
  const std::string own = sum(0), others = sum(1);
  EXPECT_EQ(claims_of(1, own), claims_of(0, others)) << "each is the other's";
  EXPECT_EQ(std::ranges::count(claims("graph(%0: f32[2]) { %1: f32[2], %2: u8[1] = ltc_c10d::all_reduce(%0, none) {op=\"sum\", "
                                      "group=7} return %1, %2 }"),
                               0u),
            1);
  leave();
  EXPECT_EQ(std::ranges::count(claims(own), 0u), 1) << "the group has ended";
}

TEST_F(ExecuteCollectives, a_group_that_is_aborted_fails_for_good) {
  LTC_NEEDS_GROUP();
  if (std::ranges::count(claims(sum(0)), 0u)) LTC_UNSUPPORTED_BY_PLUGIN("leaves the op to the host");
  const auto begin = Clock::now();
  std::thread breaker([&] {
    std::this_thread::sleep_for(100ms);
    abort(0);
  });
  expect_given_up(alone());
  breaker.join();
  expect_given_up(alone());
  EXPECT_LT(Clock::now() - begin, kPatience / 2);
  EXPECT_EQ(read(four()), (Floats{1, 2, 3, 4})) << "other work of the device";
}

TEST_F(ExecuteCollectives, a_rank_that_does_not_come_is_waited_for_no_longer_than_the_timeout) {
  LTC_NEEDS_GROUP(500ms);
  if (std::ranges::count(claims(sum(0)), 0u)) LTC_UNSUPPORTED_BY_PLUGIN("leaves the op to the host");
  const auto begin = Clock::now();
  expect_given_up(alone());
  EXPECT_LT(Clock::now() - begin, kPatience / 2);
}

TEST_F(ExecuteCollectives, a_group_without_all_its_ranks_is_not_made) {
  const auto begin = Clock::now();
  const Failure failure = create(1, 300ms);
  EXPECT_TRUE(failure.code == LTC_TIMEOUT || failure.code == LTC_UNSUPPORTED) << "it ended so: " << failure;
  EXPECT_LT(Clock::now() - begin, kPatience / 2);
}

}  // namespace
}  // namespace ltc::conformance
