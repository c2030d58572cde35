// Programs made ready to run, and their form on disk.
#include <charconv>

#include "ltc/archive.hpp"
#include "pjrt/objects.h"

namespace ltc::pjrt {

static void archive(plugin::Archive& io, Type& type) { io(type.dtype, type.sizes); }
static void archive(plugin::Archive& io, IndexCheck& check) { io(check.node, check.dim, check.size); }
static void archive(plugin::Archive& io, Signature& signature) {
  io(signature.inputs, signature.becomes, signature.scalar_count, signature.outputs, signature.checks, signature.good_outputs);
}

namespace {

constexpr std::string_view kFormat = "pjrt 4";  // of saved executables: changes with the fields of a signature

// Fields of a protocol buffer, to be put one behind the other.
std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes += static_cast<char>(value);
}
std::string field(uint64_t id, uint64_t value) { return varint(id << 3) + varint(value); }
std::string field(uint64_t id, const std::string& message) { return varint(id << 3 | 2) + varint(message.size()) + message; }

// XLA's CompileOptionsProto: one replica on this device, and no flag that departs from the op set: rounding to a narrow type is
// not skipped, and no NaN is lost.
std::string compile_options(const Facts& facts) {
  const std::string computation = field(1, varint(static_cast<uint64_t>(facts.id)));
  const std::string assignment = field(1, 1) + field(2, 1) + field(3, computation), off = field(2, 0);
  std::string options = field(3, field(4, 1) + field(5, 1) + field(9, assignment));
  options += field(7, field(1, "xla_allow_excess_precision") + field(2, off));
  if (facts.is_host) options += field(7, field(1, "xla_cpu_enable_fast_min_max") + field(2, off));
  return options;
}

// The node that a message names; see Module::set_node.
uint32_t find_node(std::string_view message) {
  constexpr std::string_view kMark = "\"node ";
  const size_t at = message.find(kMark);
  uint32_t node = LTC_NONE;
  if (at != message.npos) std::from_chars(message.data() + at + kMark.size(), message.data() + message.size(), node);
  return node;
}

}  // namespace

void compile(ltc_device* device, const ltc_compile_args& args, ltc_executable*& executable) {
  const Lowered& lowered = args.program->lowered;
  auto program = PJRT_STRUCT(Program, .code = const_cast<char*>(lowered.text.data()), .code_size = lowered.text.size(),
                             .format = "mlir", .format_size = 4);
  const std::string options = compile_options(device->facts);
  try {
    const auto made = PJRT_CALL(device->library(), Client_Compile, .client = device->client.client.get(), .program = &program,
                                .compile_options = options.data(), .compile_options_size = options.size());
    executable =
        new ltc_executable{device, lowered.signature, PJRT_OWN(device->library(), LoadedExecutable, executable, made.executable)};
  } catch (const Failure& failure) {  // what one version refuses another may take: the host goes on without it
    const plugin::Error& error = failure.error();
    const ltc_code code = error.code == LTC_INVALID_ARGUMENT ? ltc_code{LTC_UNSUPPORTED} : error.code;
    throw Failure(code, error.message, find_node(error.message));
  }
}

std::string write_executable(const Signature& signature, const std::string& serialized) {
  return plugin::save(kFormat, signature, serialized);
}

Signature read_executable(std::string_view bytes, std::string& serialized) {
  Signature signature;
  plugin::load(kFormat, bytes, signature, serialized);
  const size_t outputs = signature.outputs.size();
  bool fits = signature.becomes.size() == signature.inputs.size() && signature.good_outputs.size() == outputs;
  for (const uint32_t output : signature.becomes) fits &= output == LTC_NONE || output < outputs;
  return fits ? signature : (plugin::Archive::refuse(), signature);
}

void save(const ltc_executable* executable, const ltc_sink& sink) {
  if (!executable->bytes.empty()) return (void)sink.write(sink.context, executable->bytes.data(), executable->bytes.size());
  const Library& library = executable->device->library();
  const auto got = PJRT_CALL(library, LoadedExecutable_GetExecutable, .loaded_executable = executable->loaded.get());
  const auto unloaded = PJRT_OWN(library, Executable, executable, got.executable);
  const auto made = PJRT_CALL(library, Executable_Serialize, .executable = unloaded.get());
  const std::shared_ptr<PJRT_SerializedExecutable> owner(made.serialized_executable, made.serialized_executable_deleter);
  const std::string bytes =
      write_executable(executable->signature, std::string(made.serialized_bytes, made.serialized_bytes_size));
  sink.write(sink.context, bytes.data(), bytes.size());  // a sink that wants no more is no error
}

void load(ltc_device* device, const ltc_load_args& args, ltc_executable*& executable) {
  std::string serialized;
  std::string bytes(static_cast<const char*>(args.data), args.size);
  Signature signature = read_executable(bytes, serialized);
  const auto made = PJRT_CALL(device->library(), Executable_DeserializeAndLoad, .client = device->client.client.get(),
                              .serialized_executable = serialized.data(), .serialized_executable_size = serialized.size());
  executable =
      new ltc_executable{device, std::move(signature),
                         PJRT_OWN(device->library(), LoadedExecutable, executable, made.loaded_executable), std::move(bytes)};
}

}  // namespace ltc::pjrt
