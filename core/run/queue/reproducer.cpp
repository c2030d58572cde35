#include "core/run/queue/reproducer.h"

#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "core/base/log.h"

namespace ltc {
namespace {

constexpr int kMost = 1000;  // scripts in one folder

std::string free_name() {
  for (int i = 1; i < kMost; ++i) {
    std::string name = cat("ltc-check-", i);
    if (!std::filesystem::exists(name + ".py")) return name;
  }
  fail(Code::kResourceExhausted, "there are ", kMost, " of them already");
}

// Text inside of three quotes.
std::string quoted(const std::string& text) {
  std::string result;
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') result += '\\';
    result += letter;
  }
  return result;
}

}  // namespace

std::string write_reproducer(const std::string& title, const std::string& graph, const std::vector<HostValue>& params) {
  try {
    const std::string name = free_name();
    std::ofstream bytes(name + ".bin", std::ios::binary), script(name + ".py");
    for (const HostValue& param : params)
      bytes.write(static_cast<const char*>(param.data.get()), static_cast<std::streamsize>(type_of(param.type).size_bytes()));
    script << "\"\"\"" << quoted(title)
           << "\n\nComputes the graph on the device of LTC_BACKEND and on the CPU, and compares them.\"\"\"\n\n"
           << "from pathlib import Path\n\nimport ltc\n\nGRAPH = \"\"\"\n"
           << quoted(graph) << "\"\"\"\n\n"
           << "print(ltc.replay(GRAPH, Path(__file__).with_suffix(\".bin\").read_bytes()))\n";
    bytes.close(), script.close();
    if (!bytes || !script) fail(Code::kResourceExhausted, "the file cannot be written");
    return name + ".py";
  } catch (const std::exception& error) {
    log::warn("no script was written that repeats a wrong result: ", error.what());
    return "";
  }
}

}  // namespace ltc
