// Serves a model of another engine as `ltc serve` serves an archive: the same server, scheduler and batches.
#include <algorithm>
#include <iostream>

#include "bench/serving_engine.h"
#include "core/deploy/tool.h"
#include "core/serve/server.h"

namespace ltc::bench {
namespace {

constexpr const char* kUsage = R"(usage: ltc-serving-ENGINE ARCHIVE MODEL INSTANCES ROWS

Serves MODEL as `model` on a free port. ARCHIVE says what its function takes and gives. A call has up to ROWS rows of requests where the
function's sizes vary; INSTANCES calls run at once.
)";

serve::ServedFunction describe(const std::string& path, int64_t max_rows) {
  const auto archive = deploy::Archive::open(path);
  serve::ServedFunction function{archive->functions().at(0), 0};
  if (!function.dimensions.empty()) function.max_rows = std::min(max_rows, function.dimensions[0].max);
  return function;
}

int serve_model(const std::vector<std::string>& words) {
  if (words.size() != 4) throw deploy::WrongUse("four arguments are needed");
  const serve::ServedFunction function = describe(words[0], std::stol(words[3]));
  std::vector<serve::Runner> runners;
  for (long i = 0; i < std::stol(words[2]); ++i) runners.push_back(make_runner(words[1], function));
  serve::Registry registry;
  serve::Scheduler scheduler({function}, std::move(runners), {}, "model", registry);
  serve::ServerOptions options;
  options.port = 0;
  serve::Server server(options, {{"model", {&scheduler, 0}}}, registry);
  std::cout << "ready on http://" << options.host << ":" << server.port() << std::endl;
  server.run();
  scheduler.drain();
  return 0;
}

}  // namespace
}  // namespace ltc::bench

int main(int argc, char** argv) {
  return ltc::deploy::run_tool({argv + 1, argv + argc}, ltc::bench::kUsage, ltc::bench::serve_model);
}
