// The only file that includes spdlog: its templates cost seconds per translation unit.
#include "core/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "core/base/env.h"
#include "core/base/utf8.h"

namespace ltc::log {
namespace {

struct Logger {
  std::shared_ptr<spdlog::logger> out =
      std::make_shared<spdlog::logger>("ltc", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  int level;

  Logger() {
    out->set_pattern("[%H:%M:%S.%e] [ltc] [%^%l%$] %v");
    out->set_level(spdlog::level::trace);
    level = static_cast<int>(Level::kWarn);
    try {
      level = static_cast<int>(env::choice(env::kLog));
    } catch (const Error& error) {  // registration throws it; who logs must not
      out->warn("{}", error.what());
    }
  }
};

// Leaked: a plugin's thread may log while static objects are destroyed.
Logger& logger() {
  static auto* instance = new Logger();
  return *instance;
}

}  // namespace

bool enabled(Level level) { return static_cast<int>(level) >= logger().level && level != Level::kOff; }

void write(Level level, std::string_view message) {
  static const spdlog::level::level_enum levels[] = {spdlog::level::trace, spdlog::level::debug, spdlog::level::info,
                                                     spdlog::level::warn,  spdlog::level::err,   spdlog::level::off};
  logger().out->log(levels[static_cast<int>(level)], "{}", valid_utf8(message));
}

}  // namespace ltc::log
