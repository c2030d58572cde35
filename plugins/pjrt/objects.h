// The ABI's objects, and the functions behind its slots.
#pragma once
#include <deque>
#include <future>
#include <mutex>
#include <vector>

#include "ltc/options.hpp"
#include "ltc/plugin.hpp"
#include "pjrt/library.h"
#include "pjrt/stablehlo/lower.h"

namespace ltc::pjrt {

// A device of a client, as PJRT describes it.
struct Facts {
  PJRT_Device* device;
  int64_t id;
  std::string name, fingerprint;
  uint64_t memory_bytes;  // 0: unknown
  bool is_host;           // it is the host's processor
};

// The open parts of a library.
class Client {
 public:
  // cpu_devices: how many at most, if they are made of the host's processor.
  Client(std::string path, size_t cpu_devices);

  const Library library;
  std::shared_ptr<PJRT_Client> client;
  std::vector<Facts> devices;
};

using Verdict = std::function<void()>;
using Completion = std::shared_future<void>;

// The order of a device's work.
class Queue : public std::enable_shared_from_this<Queue> {
 public:
  // The completion of the work behind an event, which it takes over, and of all before it. The verdict is asked once the work
  // went well, and may throw.
  Completion submit(const Library& library, PJRT_Event* event, Verdict verdict = {});
  void drain() const { last_.valid() ? last_.wait() : void(); }

 private:
  struct Pending;
  void finish(Pending& pending);

  std::mutex mutex_;
  std::deque<std::shared_ptr<Pending>> pending_;
  Completion last_;
};

using BufferRef = std::shared_ptr<PJRT_Buffer>;

}  // namespace ltc::pjrt

struct ltc_plugin {
  const ltc_host_api* host;
  const ltc::plugin::Options options;
  std::mutex mutex = {};
  std::unique_ptr<ltc::pjrt::Client> client = {};
  std::string why_no_device = {};
};

struct ltc_device {
  ltc_plugin* plugin;
  const ltc::pjrt::Client& client;
  const ltc::pjrt::Facts& facts;
  std::shared_ptr<ltc::pjrt::Queue> queue = std::make_shared<ltc::pjrt::Queue>();

  const ltc::pjrt::Library& library() const { return client.library; }
};

// PJRT's buffers never change: a write makes a new one, and copies share one.
struct ltc_buffer {
  ltc_device* device;
  ltc::pjrt::Type type;
  uint64_t bytes;
  ltc::pjrt::BufferRef data;  // null until something is written
};

struct ltc_event {
  ltc_device* device;
  ltc::pjrt::Completion over;
};

struct ltc_program {
  ltc_device* device;
  ltc::pjrt::Lowered lowered;
};

struct ltc_executable {
  ltc_device* device;
  ltc::pjrt::Signature signature;
  std::shared_ptr<PJRT_LoadedExecutable> loaded;
  std::string bytes = {};  // that it was loaded from: libraries leave parts out when they write a loaded one again
};

namespace ltc::pjrt {

// ---- buffers.cpp
// Throws where the dtype, or so much memory, is not there.
std::unique_ptr<ltc_buffer> make_buffer(ltc_device* device, Type type, BufferRef data = {});
// Contents from dense host memory, and the event of its last read.
std::pair<BufferRef, PJRT_Event*> upload(const ltc_device& device, const Type& type, const void* data, bool is_read_at_once);
// To dense host memory of as many bytes.
PJRT_Event* download(const ltc_buffer& buffer, void* data);
void transfer(ltc_device* device, const ltc_transfer_args& args, ltc_event*& done);

// ---- executables.cpp
void compile(ltc_device* device, const ltc_compile_args& args, ltc_executable*& executable);
void save(const ltc_executable* executable, const ltc_sink& sink);
// The bytes of an executable that the library has serialized, and back. read throws DATA_CORRUPT.
std::string write_executable(const Signature& signature, const std::string& serialized);
Signature read_executable(std::string_view bytes, std::string& serialized);
void load(ltc_device* device, const ltc_load_args& args, ltc_executable*& executable);

// ---- events.cpp
void event_wait(ltc_event* event, uint64_t timeout_ns, bool& finished);
void event_good_outputs(ltc_event* event, size_t output_count, uint8_t* good);

// ---- execute.cpp
void execute(ltc_device* device, const ltc_execute_args& args, ltc_buffer** outputs, ltc_event*& done);

}  // namespace ltc::pjrt
