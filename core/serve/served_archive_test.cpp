#include "core/serve/served_archive.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <future>

#include "core/deploy/testing/sample_archive.h"

namespace ltc::serve {
namespace {

// The plugins' first device is lost in its third run.
class LostDevice : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Some, LostDevice, ::testing::Values("/libltc_test_lost.so", "/libltc_test_lost_async.so"));

TEST_P(LostDevice, CostsNoRequest) {
  const std::string path = std::filesystem::temp_directory_path() / ("ltc_serve_" + std::to_string(getpid()) + ".ltc");
  std::ofstream(path, std::ios::binary) << deploy::testing::sized_entries().bytes();
  ArchiveOptions options;
  options.model.backend = std::string(LTC_TEST_PLUGIN_FOLDER) + GetParam();
  Registry registry;
  ServedArchive served("m", path, options, registry);
  std::filesystem::remove(path);
  const ServedModel model = served.models().at("m");

  std::array<float, 6> x{1, 2, 3, 4, 5, 6};
  constexpr std::array<int64_t, 2> kSizes{2, 3};
  for (int i = 0; i < 5; ++i) {
    std::promise<void> done;
    const auto request = std::make_shared<Request>();
    request->inputs = {{DType::kF32, kSizes, x.data(), sizeof x}};
    request->done = [&] { done.set_value(); };
    request->function = model.function;
    model.scheduler->submit(request);
    done.get_future().wait();
    ASSERT_FALSE(request->failure) << request->failure->message;
    std::array<float, 6> scaled{};
    ASSERT_EQ(request->results[0].size(), sizeof scaled);
    std::memcpy(scaled.data(), request->results[0].data(), sizeof scaled);
    EXPECT_EQ(scaled, (std::array<float, 6>{2, 4, 6, 8, 10, 12}));
  }
}

}  // namespace
}  // namespace ltc::serve
