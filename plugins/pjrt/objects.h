// The ABI's objects, and the functions behind its slots.
#pragma once
#include <vector>

#include "ltc/options.hpp"
#include "ltc/plugin.hpp"
#include "pjrt/queue.h"
#include "pjrt/stablehlo/lower.h"

namespace ltc::pjrt {

using plugin::Failure;

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
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const Library library;
  PJRT_Client* client = nullptr;
  std::vector<Facts> devices;
};

using BufferRef = std::shared_ptr<PJRT_Buffer>;
using ExecutableRef = std::shared_ptr<PJRT_LoadedExecutable>;

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

struct ltc_program {
  ltc_device* device;
  ltc::pjrt::Lowered lowered;
};

struct ltc_executable {
  ltc_device* device;
  ltc::pjrt::Signature signature;
  ltc::pjrt::ExecutableRef loaded;
};

struct ltc_event {
  ltc_device* device;
  ltc::pjrt::Ticket ticket;
};

namespace ltc::pjrt {

// ---- buffers.cpp
// Throws where the dtype, or so much memory, is not there.
std::unique_ptr<ltc_buffer> make_buffer(ltc_device* device, Type type, BufferRef data = {});
BufferRef own(const ltc_device& device, PJRT_Buffer* buffer);
// From dense host memory. `read`, an event, may be null: then the memory is read before this returns.
BufferRef upload(const ltc_device& device, const Type& type, const void* data, PJRT_Event** read);
// To dense host memory of as many bytes.
PJRT_Event* download(const ltc_buffer& buffer, void* data);
void transfer(ltc_device* device, const ltc_transfer_args& args, ltc_event** done);

// ---- executables.cpp
ltc_executable* compile(ltc_device* device, const Lowered& lowered);
std::string save(const ltc_executable& executable);
ltc_executable* load(ltc_device* device, std::string_view bytes);

// ---- execute.cpp
void execute(ltc_device* device, const ltc_execute_args& args, ltc_buffer** outputs, ltc_event** done);

}  // namespace ltc::pjrt
