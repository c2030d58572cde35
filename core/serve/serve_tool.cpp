// ltc-serve: answers requests over HTTP with the functions of archives. It needs no Python.

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "core/base/number.h"
#include "core/deploy/tool.h"
#include "core/serve/served_archive.h"
#include "core/serve/server.h"

namespace ltc::serve {
namespace {

using deploy::WrongUse;

constexpr std::chrono::milliseconds kGrace{100};  // for threads that have nothing to do to end

constexpr const char* kUsage = R"(usage: ltc serve [OPTIONS] [NAME=]ARCHIVE...

Answers requests of the Open Inference Protocol (KServe, Triton) over HTTP: POST /v2/models/NAME/infer, and GET /v2/models/NAME,
/v2/health/live, /v2/health/ready, and /metrics for Prometheus. NAME is the file's name without its end; NAME.FUNCTION asks for one
of several functions. Where the archive has functions `prefill` and `decode`, POST /v2/models/NAME/generate and
/v2/models/NAME/generate_stream give text, as tokens. Until SIGTERM or SIGINT: then it answers what it has, and ends.

  --host ADDRESS      address to listen on; default: 127.0.0.1, this machine alone
  --port N            port; 0: any that is free; default: 8000
  --backend PLUGIN    plugin, as in LTC_BACKEND; default: that variable, else torchscript
  --instances N       calls of a model that run at once, each on a copy of it; default: 1
  --executables       take the executables of the archives, which are code: for files that you trust
  --trust-graphs      take ops whose types are not checked: for files that you trust
  --max-rows N        rows of requests that are put together in a call; default: 32; 1: none are
  --texts N           texts that an instance generates at once, each with a cache of its own; default: 8
  --max-tokens N      that a request may have generated; default: 4096
  --delay-us N        how long a request waits for others, in us; default: 0: it takes those that wait already
  --queue N           requests that may wait, for each archive; more are refused with status 503; default: 256
  --deadline-ms N     for requests that have none of their own; default: none
  --run-limit-s N     after which a call counts as hung, and /v2/health fails; default: 60
  --io-limit-s N      for a client to send a request, and to read an answer or a part of one; default: 30
  --body-limit-mb N   bytes of a request; default: 64
  --io-threads N      threads that read and write; default: 1
  --drain-s N         limit for the end, after which connections are closed and calls given up; default: 30

Exit code: 0 ended as asked, 1 an archive cannot be served, the address not be listened on, or a call was given up, 2 wrong use.
)";

struct Options {
  ServerOptions server;
  ArchiveOptions archive;
  std::vector<std::string> archives;
};

Options read_options(const std::vector<std::string>& words) {
  Options options;
  int64_t port = options.server.port, threads = 1, instances = 1, queue = 256, delay = 0, deadline = 0, run = 60, io = 30,
          body = 64, drain = 30;
  const struct {
    const char* name;
    int64_t min, max;
    int64_t* value;
  } numbers[] = {
      {"--port", 0, 65535, &port},
      {"--io-threads", 1, 256, &threads},
      {"--instances", 1, 1024, &instances},
      {"--max-rows", 1, 65536, &options.archive.max_rows},
      {"--texts", 1, 65536, &options.archive.texts},
      {"--max-tokens", 1, 1'000'000'000, &options.server.max_tokens},
      {"--delay-us", 0, 10'000'000, &delay},
      {"--queue", 1, 1'000'000, &queue},
      {"--deadline-ms", 0, 86'400'000, &deadline},
      {"--run-limit-s", 1, 86'400, &run},
      {"--io-limit-s", 1, 86'400, &io},
      {"--body-limit-mb", 1, 65536, &body},
      {"--drain-s", 0, 86'400, &drain},
  };
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto value = [&]() -> const std::string& {
      if (i + 1 == words.size()) throw WrongUse(word + " needs a value");
      return words[++i];
    };
    const auto* const number = std::ranges::find_if(numbers, [&](const auto& one) { return word == one.name; });
    if (number != std::end(numbers)) {
      const std::string& text = value();
      if (!read_number(text, *number->value) || *number->value < number->min || *number->value > number->max)
        throw WrongUse(cat(word, " ", text, ": this is to be an integer from ", number->min, " to ", number->max));
    } else if (word == "--host") {
      options.server.host = value();
    } else if (word == "--backend") {
      options.archive.model.backend = value();
    } else if (word == "--executables") {
      options.archive.model.runs_executables = true;
    } else if (word == "--trust-graphs") {
      options.archive.model.graphs = deploy::Graphs::kTrusted;
    } else if (word.starts_with("-")) {
      throw WrongUse("there is no option " + word);
    } else {
      options.archives.push_back(word);
    }
  }
  if (options.archives.empty()) throw WrongUse("the archive is missing");
  options.server.port = static_cast<uint16_t>(port);
  options.server.threads = static_cast<uint32_t>(threads);
  options.server.body_limit = static_cast<size_t>(body) << 20;
  options.server.deadline = std::chrono::milliseconds(deadline);
  options.server.run_limit = std::chrono::seconds(run);
  options.server.io_limit = std::chrono::seconds(io);
  options.server.drain_limit = std::chrono::seconds(drain);
  options.archive.model.instances = static_cast<uint32_t>(instances);
  options.archive.scheduler = {static_cast<size_t>(queue), std::chrono::microseconds(delay)};
  return options;
}

// NAME=PATH, or a path whose file's name gives the name.
std::pair<std::string, std::string> name_and_path(const std::string& word) {
  const size_t sign = word.find('=');
  if (sign != word.npos && word.find('/') > sign) return {word.substr(0, sign), word.substr(sign + 1)};
  return {std::filesystem::path(word).stem().string(), word};
}

// Ends the process beside a call of a plugin that does not return.
[[noreturn]] void give_up() {
  std::cout.flush();
  std::cerr << "ltc: a call of a model still runs after --drain-s, and is given up" << std::endl;
  std::_Exit(deploy::kNo);
}

int serve(Options options) {
  options.archive.model.folders = deploy::plugin_folders();
  Registry registry;
  std::map<std::string, ServedModel> models;
  std::vector<std::unique_ptr<ServedArchive>> archives;
  for (const std::string& word : options.archives) {
    const auto [name, path] = name_and_path(word);
    archives.push_back(std::make_unique<ServedArchive>(name, path, options.archive, registry));
    for (const auto& [model, served] : archives.back()->models()) {
      if (!models.emplace(model, served).second) throw WrongUse(cat("two models are called ", model, ": write NAME=", path));
    }
    std::cout << archives.back()->report();
  }
  Server server(options.server, std::move(models), registry);
  std::cout << "ready on http://" << options.server.host << ":" << server.port() << std::endl;
  const Clock::time_point until = std::max(server.run(), Clock::now() + kGrace);
  for (const auto& archive : archives) {
    if (!archive->drain(until)) give_up();
  }
  std::cout << "ended" << std::endl;
  return 0;
}

int main(const std::vector<std::string>& words) {
  return deploy::run_tool(words, kUsage, [](const auto& given) { return serve(read_options(given)); });
}

}  // namespace
}  // namespace ltc::serve

int main(int argc, char** argv) { return ltc::serve::main({argv + 1, argv + argc}); }
