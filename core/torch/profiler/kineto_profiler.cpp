// The timeline's events for torch.profiler: Kineto asks for a session, starts and stops it, and takes its activities.
//
// Activities PRIVATEUSE1_RUNTIME are the work of the program's threads. A kernel is a CONCURRENT_KERNEL and a transfer a
// GPU_MEMCPY: PyTorch counts both as device time of the PrivateUse1 device. Where the plugin does not tell of kernels
// (ltc/profile.h), a run of a program is one itself; else it is a GPU_USER_ANNOTATION around them, which does not count. An arrow
// leads from a barrier to its run.
#if __has_include(<torch/csrc/profiler/standalone/privateuse1_profiler.h>)
#ifndef USE_KINETO
#define USE_KINETO  // PyTorch's wheels have it; the header is empty without
#endif
#include <libkineto.h>
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>

#include <chrono>
#include <unordered_set>

#include "core/report/timeline.h"

namespace ltc {
namespace {

using libkineto::ActivityType;

// From the steady clock to the one of the trace.
int64_t offset_to_system_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count() - static_cast<int64_t>(timeline::now_ns());
}

struct Lane {
  const char* event;
  ActivityType type;
};
constexpr Lane kLanes[] = {
    {"device", ActivityType::CONCURRENT_KERNEL},    {"execute", ActivityType::CONCURRENT_KERNEL},
    {"host_step", ActivityType::CONCURRENT_KERNEL}, {"kernel", ActivityType::CONCURRENT_KERNEL},
    {"upload", ActivityType::GPU_MEMCPY},           {"download", ActivityType::GPU_MEMCPY},
    {"copy_from_peer", ActivityType::GPU_MEMCPY},
};

ActivityType type_of(std::string_view event) {
  for (const Lane& lane : kLanes) {
    if (event == lane.event) return lane.type;
  }
  return ActivityType::PRIVATEUSE1_RUNTIME;
}

std::string name_of(const timeline::Event& event) {
  const std::string_view name = event.name;
  if (name == "execute" || name == "device") return cat("ltc program ", event.program, " (", event.ops, " ops)");
  if (name == "kernel") return event.reason;
  if (event.reason.empty()) return cat("ltc ", name);
  return cat("ltc ", name, ": ", event.reason);
}

// Metadata stands between quotes in JSON.
std::string plain(std::string text) {
  for (char& letter : text) {
    if (letter == '"' || letter == '\\' || static_cast<unsigned char>(letter) < ' ') letter = ' ';
  }
  return text;
}

class Session : public libkineto::IActivityProfilerSession {
 public:
  void start() override {
    timeline::start(true);
    status_ = libkineto::TraceStatus::RECORDING;
  }
  void stop() override {
    timeline_ = timeline::stop();
    offset_ns_ = offset_to_system_ns();
    status_ = libkineto::TraceStatus::READY;
  }
  std::vector<std::string> errors() override { return {}; }
  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override { return nullptr; }
  std::vector<libkineto::ResourceInfo> getResourceInfos() override { return {}; }
  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override { return std::move(buffer_); }

  void processTrace(libkineto::ActivityLogger& logger) override {
    buffer_ = std::make_unique<libkineto::CpuTraceBuffer>();
    buffer_->span = libkineto::TraceSpan(at(timeline_.begin_ns), at(timeline_.end_ns), "ltc");
    // An asynchronous device tells of its runs; their submission is then work of the queue.
    const bool is_asynchronous = std::ranges::any_of(
        timeline_.events, [](const timeline::Event& event) { return event.name == std::string_view("device"); });
    for (const timeline::Event& event : timeline_.events) {
      if (event.name == std::string_view("kernel")) runs_with_kernels_.insert(event.run_id);
    }
    for (const timeline::Event& event : timeline_.events) add(event, is_asynchronous);
    for (const auto& activity : buffer_->activities) activity->log(logger);
  }

 private:
  int64_t at(uint64_t steady_ns) const { return static_cast<int64_t>(steady_ns) + offset_ns_; }

  void add(const timeline::Event& event, bool is_asynchronous) {
    const std::string_view kind = event.name;
    const bool is_submission = is_asynchronous && kind == "execute";
    const bool is_run = kind == (is_asynchronous ? "device" : "execute");
    const ActivityType type = is_submission                                         ? ActivityType::PRIVATEUSE1_RUNTIME
                              : is_run && runs_with_kernels_.contains(event.run_id) ? ActivityType::GPU_USER_ANNOTATION
                                                                                    : type_of(kind);
    buffer_->emplace_activity(buffer_->span, type, is_submission ? "ltc submit" : name_of(event));
    libkineto::GenericTraceActivity& activity = *buffer_->activities.back();
    activity.startTime = at(event.begin_ns);
    activity.endTime = at(event.end_ns);
    activity.threadId = static_cast<int32_t>(event.thread);
    activity.device = type == ActivityType::PRIVATEUSE1_RUNTIME ? libkineto::processId() : 0;
    activity.resource = type == ActivityType::PRIVATEUSE1_RUNTIME ? activity.threadId : 0;
    if (event.run_id != 0 && (kind == "barrier" || is_run)) {
      activity.id = static_cast<int32_t>(event.run_id);
      activity.flow.id = static_cast<uint32_t>(event.run_id);
      activity.flow.type = libkineto::kLinkAsyncCpuGpu;
      activity.flow.start = kind == "barrier";
    }
    if (event.where != kNoLocation) activity.addMetadataQuoted("line", plain(location_text(event.where)));
    if (!event.detail.empty()) activity.addMetadataQuoted("detail", plain(event.detail));
    if (event.bytes) activity.addMetadata("bytes", event.bytes);
    if (event.ops && kind != "kernel") activity.addMetadata("ops", event.ops);
  }

  timeline::Timeline timeline_;
  std::unordered_set<uint64_t> runs_with_kernels_;
  int64_t offset_ns_ = 0;
  std::unique_ptr<libkineto::CpuTraceBuffer> buffer_;
};

class Profiler : public libkineto::IActivityProfiler {
 public:
  const std::string& name() const override { return name_; }
  const std::set<ActivityType>& availableActivities() const override { return activities_; }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(const std::set<ActivityType>& types,
                                                                 const libkineto::Config&) override {
    return types.contains(ActivityType::CONCURRENT_KERNEL) ? std::make_unique<Session>() : nullptr;
  }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(int64_t, int64_t, const std::set<ActivityType>& types,
                                                                 const libkineto::Config& config) override {
    return configure(types, config);
  }

 private:
  const std::string name_ = "ltc";
  const std::set<ActivityType> activities_ = {ActivityType::PRIVATEUSE1_RUNTIME, ActivityType::CONCURRENT_KERNEL,
                                              ActivityType::GPU_MEMCPY};
};

REGISTER_PRIVATEUSE1_PROFILER(Profiler);

}  // namespace
}  // namespace ltc
#endif
