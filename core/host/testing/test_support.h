// Helpers that the tests of this folder share.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/host/status.h"
#include "core/testing/unvalidated.h"

namespace ltc::host {

// The ltc::Error that `call` throws.
template <typename Call>
Error error_of(Call&& call) {
  try {
    call();
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(Code::kInternal, "nothing was thrown");
}

template <typename Call>
std::string message_of(Call&& call) {
  return error_of(call).what();
}

// Every test ends with no status object left behind. The host defends itself also where nothing else checks.
class HostTest : public ::testing::Test {
 protected:
  const testing::Unvalidated alone_;
  void TearDown() override { EXPECT_EQ(live_statuses(), 0u); }
};

}  // namespace ltc::host
