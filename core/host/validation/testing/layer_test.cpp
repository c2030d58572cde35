// Every clause of the table is broken once, and seen; a plugin that keeps the contract breaks none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/host/plugin.h"
#include "core/host/validation/report.h"
#include "core/host/validation/testing/fake.h"

namespace ltc::host::validation {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The faults here are reported, also where the tests run with LTC_VALIDATE=abort.
class Reporting : public ::testing::Environment {
  void SetUp() override { setenv("LTC_VALIDATE", "1", 1); }
};
[[maybe_unused]] const auto* const reporting = ::testing::AddGlobalTestEnvironment(new Reporting());

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto& some : {call_cases(), graph_cases(), run_cases(), host_cases()})
    cases.insert(cases.end(), some.begin(), some.end());
  return cases;
}

// The ids of the clauses that were broken meanwhile.
class Broken {
 public:
  Broken() {
    for (size_t i = 0; i < kClauseCount; ++i) before_.push_back(violations(i));
  }
  std::vector<std::string> ids() const {
    std::vector<std::string> ids;
    for (size_t i = 0; i < kClauseCount; ++i) {
      if (violations(i) != before_[i]) ids.emplace_back(kClauses[i].id);
    }
    return ids;
  }

 private:
  std::vector<uint64_t> before_;
};

class Clauses : public ::testing::TestWithParam<Case> {};

TEST_P(Clauses, is_reported_and_no_other) {
  const Broken broken;
  Fake fake;
  GetParam().breaks(fake);
  EXPECT_THAT(broken.ids(), ElementsAre(GetParam().id));
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.id;
  std::ranges::replace(name, '.', '_');
  return name + "_" + std::to_string(info.index);
}
INSTANTIATE_TEST_SUITE_P(All, Clauses, ::testing::ValuesIn(all_cases()), name_of);

TEST(Layer, every_clause_has_a_case) {
  std::vector<std::string> without;
  const auto cases = all_cases();
  for (const Clause& clause : kClauses) {
    if (std::ranges::find(cases, clause.id, &Case::id) == cases.end()) without.emplace_back(clause.id);
  }
  EXPECT_THAT(without, IsEmpty());
}

bool take(void*, const void*, size_t) { return true; }

// Calls every slot once.
void use_all(Fake& fake, bool donate) {
  fake.enter();
  fake.took(fake.describe());
  FakeRun run(fake);
  testing::CGraph graph = scaled();
  EXPECT_TRUE(fake.claim(run.device, graph.get()));
  const uint8_t donated = donate;
  run.args.donate = &donated;
  ASSERT_TRUE(run.submit());
  if (run.done) {
    EXPECT_TRUE(run.wait());
  }
  ltc_program* program = fake.lower(run.device, graph.get());
  const ltc_sink sink{nullptr, take};
  EXPECT_TRUE(fake.took(fake.slots->program_text(program, &sink)));
  EXPECT_TRUE(fake.took(fake.slots->executable_save(run.args.executable, &sink)));
  alignas(64) const char bytes[64] = {};
  auto load = sized<ltc_load_args>();
  load.data = bytes;
  load.size = sizeof bytes;
  ltc_executable* loaded = nullptr;
  EXPECT_TRUE(fake.took(fake.slots->executable_load(run.device, &load, &loaded)));
  auto stats = sized<ltc_memory_stats>();
  stats.in_use_bytes = stats.peak_bytes = stats.limit_bytes = stats.largest_free_bytes = LTC_FOREVER;
  EXPECT_TRUE(fake.took(fake.slots->memory_stats(run.device, &stats)));
  EXPECT_EQ(stats.in_use_bytes, 12u);
  if (run.done) fake.slots->event_destroy(run.done);
  if (!donate) fake.slots->buffer_destroy(run.input);
  fake.slots->buffer_destroy(run.output);
  fake.slots->program_destroy(program);
  fake.slots->executable_destroy(loaded);
  fake.slots->executable_destroy(run.args.executable);
}

TEST(Layer, a_plugin_that_keeps_the_contract_breaks_nothing) {
  const Broken broken;
  Fake fake;
  fake.api.compile = [](ltc_device*, const ltc_compile_args*, ltc_executable** executable) -> ltc_status* {
    *executable = fresh<ltc_executable>();
    return nullptr;
  };
  use_all(fake, true);
  EXPECT_THAT(broken.ids(), IsEmpty());
}

TEST(Layer, a_synchronous_plugin_that_keeps_the_contract_breaks_nothing) {
  const Broken broken;
  Fake fake;
  fake.without_events();
  fake.api.execute = [](ltc_device*, const ltc_execute_args*, ltc_buffer** outputs, ltc_event**) -> ltc_status* {
    outputs[0] = fresh<ltc_buffer>();
    return nullptr;
  };
  use_all(fake, false);
  EXPECT_THAT(broken.ids(), IsEmpty());
}

TEST(Layer, a_donated_handle_may_come_back) {
  const Broken broken;
  Fake fake;
  fake.api.execute = [](ltc_device*, const ltc_execute_args* args, ltc_buffer** outputs, ltc_event**) -> ltc_status* {
    outputs[0] = args->inputs[0];
    return nullptr;
  };
  FakeRun run(fake);
  const uint8_t donated = 1;
  run.args.donate = &donated;
  EXPECT_TRUE(run.submit());
  fake.slots->buffer_destroy(run.output);
  EXPECT_THAT(broken.ids(), IsEmpty());
}

TEST(Layer, a_plugin_may_call_the_host_until_plugin_close_returns) {
  const Broken broken;
  Fake fake;
  fake.api.plugin_close = [](ltc_plugin*) { Fake::offered->is_awaited(Fake::offered->host); };
  fake.enter();
  fake.slots->plugin_close(fake.plugin);
  EXPECT_THAT(broken.ids(), IsEmpty());
}

// ---- off and on, through the host's own class

ltc_plugin_api entered_slots;
const ltc_host_api* entered_host;
bool entry(ltc_entry_args* args) {
  entered_host = args->host;
  entered_slots = correct_slots();
  args->agreed = args->oldest;
  args->api = &entered_slots;
  return true;
}

class Switch : public ::testing::Test {
 protected:
  void SetUp() override { before_ = std::getenv("LTC_VALIDATE") ? std::getenv("LTC_VALIDATE") : ""; }
  void TearDown() override { setenv("LTC_VALIDATE", before_.c_str(), 1); }

 private:
  std::string before_;
};

TEST_F(Switch, off_it_is_in_no_path) {
  setenv("LTC_VALIDATE", "0", 1);
  const auto plugin = Plugin::enter("fake", entry);
  const ltc_plugin_api& slots = plugin->slots();
  EXPECT_EQ(std::memcmp(&slots, &entered_slots, sizeof slots), 0) << "each pointer is the plugin's own";
  const HostApi own("fake", nullptr);
  EXPECT_EQ(entered_host->status_create, own.table()->status_create);
  EXPECT_EQ(entered_host->is_awaited, own.table()->is_awaited);
}

TEST_F(Switch, on_it_is_in_every_path) {
  setenv("LTC_VALIDATE", "1", 1);
  const auto plugin = Plugin::enter("fake", entry);
  const ltc_plugin_api& slots = plugin->slots();
  EXPECT_NE(slots.execute, entered_slots.execute);
  EXPECT_NE(slots.event_good_outputs, entered_slots.event_good_outputs);
  const HostApi own("fake", nullptr);
  EXPECT_NE(entered_host->status_create, own.table()->status_create);
}

TEST_F(Switch, abort_ends_the_process_at_the_first) {
  setenv("LTC_VALIDATE", "abort", 1);
  EXPECT_EXIT(
      {
        Fake fake;
        fake.enter();
        fake.slots->buffer_destroy(nullptr);
      },
      ::testing::KilledBySignal(SIGABRT), "the host broke handle.alive");
}

}  // namespace
}  // namespace ltc::host::validation
