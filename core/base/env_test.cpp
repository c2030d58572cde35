#include "core/base/env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "core/base/error.h"
#include "core/base/utf8.h"

namespace ltc::env {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class EnvTest : public ::testing::Test {
 protected:
  void set(const Variable& variable, const char* value) { setenv(variable.name, value, 1); }
  ~EnvTest() override {
    for (const Variable& variable : kVariables) unsetenv(variable.name);
  }

  std::string refusal(const Variable& variable) {
    try {
      return "taken: " + get(variable);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kInvalidArgument);
      return error.what();
    }
  }
};

TEST_F(EnvTest, UnsetAndEmptyAreTheStandard) {
  unsetenv(kFallback.name);
  EXPECT_EQ(get(kFallback), "allow");
  set(kFallback, "");
  EXPECT_EQ(get(kFallback), "allow");
  EXPECT_EQ(choice(kLog), 3u);
}

TEST_F(EnvTest, EveryFlagIsZeroOrOneAndNothingElse) {
  for (const Variable& variable : kVariables) {
    if (std::string_view(variable.legal) != kFlag) continue;
    set(variable, "0");
    EXPECT_FALSE(is_set(variable)) << variable.name;
    set(variable, "1");
    EXPECT_TRUE(is_set(variable)) << variable.name;
    for (const char* wrong : {"false", "off", " 0", "0 ", "2", "yes", "01", "0|1", "\xff"}) {
      set(variable, wrong);
      EXPECT_EQ(refusal(variable), valid_utf8(cat(variable.name, " is '", wrong, "'; it may be 0 or 1")));
    }
    unsetenv(variable.name);
  }
}

TEST_F(EnvTest, ChoicesAreExact) {
  set(kFallback, "error");
  EXPECT_EQ(get(kFallback), "error");
  EXPECT_EQ(choice(kFallback), 2u);
  for (const char* wrong : {"ERROR", "error ", "err", "allow|warn"}) {
    set(kFallback, wrong);
    EXPECT_EQ(refusal(kFallback), cat("LTC_FALLBACK is '", wrong, "'; it may be allow, warn or error"));
  }
}

TEST_F(EnvTest, NumbersAreWholeAndFit) {
  for (const char* right : {"random:0", "random:18446744073709551615", "all", "minimal"}) {
    set(kClaims, right);
    EXPECT_EQ(get(kClaims), right);
  }
  for (const char* wrong :
       {"random", "random:", "random:JUNK", "random:1x", "random:-1", "random: 1", "random:99999999999999999999999"}) {
    set(kClaims, wrong);
    EXPECT_EQ(refusal(kClaims), cat("LTC_CLAIMS is '", wrong, "'; it may be all, minimal or random:SEED"));
  }
}

TEST_F(EnvTest, AllAreCheckedAtOnce) {
  EXPECT_NO_THROW(check());
  set(kStacks, "on");
  EXPECT_THROW(check(), Error);
}

TEST_F(EnvTest, StrangersAreToldWithTheNearestName) {
  const std::vector<std::string> names{"LTC_FALBACK", "LTC_EAGER", "PATH", "LTC_MY_CHIP_SPEED"};
  EXPECT_THAT(strangers(names, std::vector<std::string>{"my-chip", "cuda"}),
              ElementsAre("nothing reads the environment variable LTC_FALBACK; the nearest that is read is LTC_FALLBACK"));
  EXPECT_EQ(strangers(names, {}).size(), 2u);
}

TEST_F(EnvTest, VariablesOfAPluginAreItsOptions) {
  ::setenv("LTC_MY_CHIP_CLOCK_MHZ", "200", 1);
  ::setenv("LTC_MY_CHIP_EMPTY", "", 1);
  using Options = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(options_of("my-chip"), (Options{{"clock_mhz", "200"}}));
  EXPECT_EQ(options_of("my"), (Options{{"chip_clock_mhz", "200"}}));
  EXPECT_TRUE(options_of("cache").empty()) << "LTC_CACHE_DIR is the host's";
  ::unsetenv("LTC_MY_CHIP_CLOCK_MHZ");
  ::unsetenv("LTC_MY_CHIP_EMPTY");
}

TEST_F(EnvTest, TheReadmeNamesThemAll) {
  std::ostringstream readme;
  readme << std::ifstream(LTC_README).rdbuf();
  for (const Variable& variable : kVariables) EXPECT_THAT(readme.str(), HasSubstr(cat("| `", variable.name, "` |")));
}

}  // namespace
}  // namespace ltc::env
