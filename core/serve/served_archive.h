// An archive with what answers its requests.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/serve/server.h"

namespace ltc::serve {

struct ArchiveOptions {
  deploy::ModelOptions model;  // `instances` is the number of workers
  SchedulerOptions scheduler;
  int64_t max_rows = 32;  // of a call in which requests are put together; 1: they are not
  int64_t texts = 8;      // that an instance generates at once; rounded up to the slots of sessions
};

class ServedArchive {
 public:
  // Compiles the functions. `name` is the model's, for clients and for the metrics. Throws as deploy::Model::load.
  ServedArchive(const std::string& name, const std::string& path, const ArchiveOptions& options, Registry& registry);

  bool drain(Clock::time_point until);  // as Scheduler::drain
  // By name: NAME.FUNCTION, and NAME where there is one function, or one that is called `forward`, or where text is generated.
  std::map<std::string, ServedModel> models();
  // A line for each function: how it is served, or why it is not.
  const std::string& report() const { return report_; }

 private:
  void serve_functions(const ArchiveOptions& options, const TextModel* text_model, Registry& registry);
  void serve_texts(const ArchiveOptions& options, const TextModel& text_model, Registry& registry);
  deploy::Session& new_session() { return *sessions_.emplace_back(std::make_unique<deploy::Session>(model_)); }
  ServedFunction describe(deploy::Session& session, size_t index, const ArchiveOptions& options);

  const std::string name_;
  std::shared_ptr<deploy::Model> model_;
  std::vector<std::unique_ptr<deploy::Session>> sessions_;
  std::unique_ptr<Scheduler> scheduler_;      // null where no function is served by itself
  std::unique_ptr<TextGenerator> generator_;  // null where no text is generated
  std::string report_;
};

}  // namespace ltc::serve
