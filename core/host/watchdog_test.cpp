// A call of a plugin that does not return is named in the log, in whichever slot it is.
#include "core/host/watchdog.h"

#include <thread>

#include "core/host/library.h"
#include "core/host/testing/test_rig.h"

namespace ltc::host {
namespace {

using ::ltc::testing::plugin_path;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The test plugin with events, of which each slot is slow: the one that is wanted returns once the log has named it.
ltc_plugin_api inner;
const char* slow_slot;

void be_slow(const char* slot) {
  if (std::string_view(slot) != slow_slot) return;
  for (const size_t before = watchdog_lines(); watchdog_lines() == before;) std::this_thread::yield();
}

template <auto slot>
struct Slow;
template <typename Result, typename... Args, Result (*ltc_plugin_api::*slot)(Args...)>
struct Slow<slot> {
  static inline const char* name;
  static Result call(Args... args) {
    be_slow(name);
    return (inner.*slot)(args...);
  }
  static void put_into(ltc_plugin_api& table, const char* as) {
    name = as;
    table.*slot = call;
  }
};

bool enter_slow(ltc_entry_args* args) {
  static Library library = Library::open(plugin_path("test_async"));
  static ltc_plugin_api table;
  be_slow("ltc_plugin_entry");
  if (!reinterpret_cast<ltc_plugin_entry_fn*>(library.find("ltc_plugin_entry"))(args)) return false;
  table = inner = *args->api;
#define SLOW(slot) Slow<&ltc_plugin_api::slot>::put_into(table, #slot)
  SLOW(describe);
  SLOW(device_open);
  SLOW(device_close);
  SLOW(buffer_create);
  SLOW(buffer_destroy);
  SLOW(transfer);
  SLOW(claims);
  SLOW(lower);
  SLOW(program_destroy);
  SLOW(compile);
  SLOW(executable_destroy);
  SLOW(execute);
  SLOW(event_wait);
  SLOW(event_destroy);
  SLOW(plugin_close);
#undef SLOW
  args->api = &table;
  return true;
}

// All that a device is asked.
void use_plugin() {
  const CallLine line(intern_location("train.py:31"));
  Rig rig(Plugin::enter("slow", enter_slow)->open_device(0));
  CGraph graph = scaled_graph();
  rig.device->claims(graph.get());
  ltc_executable* executable = rig.build(graph);
  ltc_buffer *x = rig.upload({1, 2, 3}), *y = nullptr;
  rig.finish(rig.run(executable, {x}, {ltc_scalar{.f = 1.0}}, &y));
  for (ltc_buffer* buffer : {x, y}) rig.device->destroy_buffer(buffer);
  rig.device->destroy_executable(executable);
}

class WatchdogTest : public HostTest, public ::testing::WithParamInterface<const char*> {
 protected:
  WatchdogTest() {
    watch_calls();  // what the first plugin of the process does: it sets the limit of the environment
    set_watchdog_limit(std::chrono::milliseconds(20));
  }
  ~WatchdogTest() override { set_watchdog_limit(std::chrono::milliseconds(0)); }
};

TEST_P(WatchdogTest, names_the_slot_and_the_line_and_tells_of_the_return) {
  slow_slot = GetParam();
  ::testing::internal::CaptureStderr();
  use_plugin();
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr(cat("[warning] [slow] ", slow_slot, " has not returned for ")));
  EXPECT_THAT(log, HasSubstr(" s, called for train.py:31"));
  EXPECT_THAT(log, HasSubstr(cat("[warning] [slow] ", slow_slot, " has returned after ")));
  EXPECT_EQ(log.find("; compiling may take minutes") != log.npos, std::string_view(slow_slot) == "compile");
}

INSTANTIATE_TEST_SUITE_P(Slots, WatchdogTest,
                         ::testing::Values("ltc_plugin_entry", "describe", "device_open", "device_close", "buffer_create",
                                           "buffer_destroy", "transfer", "claims", "lower", "program_destroy", "compile",
                                           "executable_destroy", "execute", "event_wait", "event_destroy", "plugin_close"),
                         [](const auto& slot) { return std::string(slot.param); });

TEST_F(WatchdogTest, names_a_call_of_each_thread) {
  slow_slot = "describe";
  ::testing::internal::CaptureStderr();
  std::thread other([] { Plugin::enter("slow", enter_slow); });
  other.join();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("[slow] describe has not returned for "), Not(HasSubstr("called for"))));
}

}  // namespace
}  // namespace ltc::host
