// Work in a process of its own, and how it may end.
#include "core/host/child_process.h"

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "core/host/testing/test_support.h"

namespace ltc::host {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

TEST(ChildProcess, its_output_comes_back) {
  const std::string long_text(100'000, 'x');
  EXPECT_EQ(in_a_child([&] { std::cout << long_text; }, seconds(60)), long_text);
  EXPECT_EQ(in_a_child([] {}, seconds(60)), "");
}

TEST(ChildProcess, an_end_before_the_work_is_done_is_told) {
  const auto message = [](auto work, milliseconds limit = seconds(60)) { return message_of([&] { in_a_child(work, limit); }); };
  EXPECT_THAT(message([] { std::_Exit(3); }), HasSubstr("it ended the process with exit code 3"));
  EXPECT_THAT(message([] { std::_Exit(0); }), HasSubstr("it ended the process with exit code 0"));
  EXPECT_THAT(message([] { std::raise(SIGKILL); }), HasSubstr("it ended the process by signal 9, Killed"));
  EXPECT_THAT(message([] { std::this_thread::sleep_for(seconds(100)); }, milliseconds(1100)),
              HasSubstr("it gave no answer within 1 s"));
}

}  // namespace
}  // namespace ltc::host
