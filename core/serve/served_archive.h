// An archive with its scheduler.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/serve/scheduler.h"
#include "core/serve/server.h"

namespace ltc::serve {

struct ArchiveOptions {
  deploy::ModelOptions model;  // `instances` is the number of workers
  SchedulerOptions scheduler;
  int64_t max_rows = 32;  // of a call in which requests are put together; 1: they are not
};

class ServedArchive {
 public:
  // Compiles the functions. `name` is the model's, for clients and for the metrics. Throws as deploy::Model::load.
  ServedArchive(const std::string& name, const std::string& path, const ArchiveOptions& options, Registry& registry);

  Scheduler& scheduler() { return *scheduler_; }
  // By name: NAME.FUNCTION, and NAME where there is one function, or one that is called `forward`.
  std::map<std::string, ServedModel> models();
  // A line for each function: how it is served, or why it is not.
  const std::string& report() const { return report_; }

 private:
  ServedFunction describe(size_t index, const ArchiveOptions& options);

  const std::string name_;
  std::shared_ptr<deploy::Model> model_;
  std::vector<std::unique_ptr<deploy::Session>> sessions_;  // by worker
  std::unique_ptr<Scheduler> scheduler_;
  std::string report_;
};

}  // namespace ltc::serve
