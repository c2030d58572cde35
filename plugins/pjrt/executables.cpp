// Programs made ready to run, and their form on disk.
#include <charconv>
#include <cstring>
#include <type_traits>

#include "pjrt/objects.h"

namespace ltc::pjrt {
namespace {

// ---- compiling

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

// The node of which a message speaks; see Module::set_node.
uint32_t find_node(std::string_view message) {
  constexpr std::string_view kMark = "\"node ";
  const size_t at = message.find(kMark);
  uint32_t node = LTC_NONE;
  if (at != message.npos) std::from_chars(message.data() + at + kMark.size(), message.data() + message.size(), node);
  return node;
}

ExecutableRef own(const ltc_device& device, PJRT_LoadedExecutable* executable) {
  return ExecutableRef(executable, [&library = device.library()](PJRT_LoadedExecutable* ended) {
    auto args = PJRT_ARGS(LoadedExecutable_Destroy);
    args.executable = ended;
    PJRT_TRY(library, LoadedExecutable_Destroy, args);
  });
}

// ---- as bytes: a header, the signature as words, and what the library writes

struct Header {
  uint64_t magic, checksum, words;  // the sum is that of all that follows
};
constexpr uint64_t kMagic = 0x32'74'72'6A'70'63'74'6C;  // "ltcpjrt2"

uint64_t checksum(std::string_view bytes) {
  uint64_t sum = 0xCBF29CE484222325;
  for (const char byte : bytes) sum = (sum ^ static_cast<uint8_t>(byte)) * 0x100000001B3;
  return sum;
}

// Writes values as words, or reads them back: the same walk serves both.
class Words {
 public:
  Words() = default;
  explicit Words(std::vector<int64_t> words) : words(std::move(words)), reads_(true) {}

  template <typename T>
  requires std::is_integral_v<T>
  void walk(T& value) {
    if (reads_) {
      value = static_cast<T>(words.at(next_++));
    } else {
      words.push_back(static_cast<int64_t>(value));
    }
  }
  template <typename T>
  void walk(std::vector<T>& values) {
    uint64_t size = values.size();
    walk(size);
    if (reads_ && size > words.size()) throw Failure(LTC_DATA_CORRUPT, "a saved executable is damaged");
    values.resize(size);
    for (T& value : values) walk(value);
  }
  void walk(Type& type) { walk(type.dtype), walk(type.sizes); }
  void walk(IndexCheck& check) { walk(check.node), walk(check.dim), walk(check.size); }
  void walk(Signature& signature) {
    walk(signature.inputs), walk(signature.becomes), walk(signature.scalar_count), walk(signature.outputs),
        walk(signature.checks), walk(signature.good_outputs);
  }

  std::vector<int64_t> words;

 private:
  bool reads_ = false;
  size_t next_ = 0;
};

}  // namespace

ltc_executable* compile(ltc_device* device, const Lowered& lowered) {
  auto program = PJRT_STRUCT(Program);
  program.code = const_cast<char*>(lowered.text.data());
  program.code_size = lowered.text.size();
  program.format = "mlir";
  program.format_size = 4;
  const std::string options = compile_options(device->facts);
  auto args = PJRT_ARGS(Client_Compile);
  args.client = device->client.client;
  args.program = &program;
  args.compile_options = options.data();
  args.compile_options_size = options.size();
  try {
    PJRT_CALL(device->library(), Client_Compile, args);
  } catch (const Failure& failure) {  // what one version refuses another may take: the host goes on without it
    const plugin::Error& error = failure.error();
    const ltc_code code = error.code == LTC_INVALID_ARGUMENT ? ltc_code{LTC_UNSUPPORTED} : error.code;
    throw Failure(code, error.message, find_node(error.message));
  }
  return new ltc_executable{device, lowered.signature, own(*device, args.executable)};
}

std::string save(const ltc_executable& executable) {
  const Library& library = executable.device->library();
  auto get = PJRT_ARGS(LoadedExecutable_GetExecutable);
  get.loaded_executable = executable.loaded.get();
  PJRT_CALL(library, LoadedExecutable_GetExecutable, get);
  const std::shared_ptr<PJRT_Executable> unloaded(get.executable, [&](PJRT_Executable* ended) {
    auto args = PJRT_ARGS(Executable_Destroy);
    args.executable = ended;
    PJRT_TRY(library, Executable_Destroy, args);
  });
  auto args = PJRT_ARGS(Executable_Serialize);
  args.executable = unloaded.get();
  PJRT_CALL(library, Executable_Serialize, args);
  const std::shared_ptr<PJRT_SerializedExecutable> bytes(args.serialized_executable, args.serialized_executable_deleter);
  Signature signature = executable.signature;
  Words words;
  words.walk(signature);
  std::string body(reinterpret_cast<const char*>(words.words.data()), words.words.size() * sizeof(int64_t));
  body.append(args.serialized_bytes, args.serialized_bytes_size);
  const Header header{kMagic, checksum(body), words.words.size()};
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + body;
}

ltc_executable* load(ltc_device* device, std::string_view bytes) {
  Header header{};
  std::memcpy(&header, bytes.data(), std::min(bytes.size(), sizeof header));
  bytes.remove_prefix(std::min(bytes.size(), sizeof header));
  if (header.magic != kMagic || header.checksum != checksum(bytes) || header.words > bytes.size() / sizeof(int64_t)) {
    throw Failure(LTC_DATA_CORRUPT, "a saved executable is damaged, or of another version");
  }
  std::vector<int64_t> words(header.words);
  std::memcpy(words.data(), bytes.data(), words.size() * sizeof(int64_t));
  bytes.remove_prefix(words.size() * sizeof(int64_t));
  Signature signature;
  Words(std::move(words)).walk(signature);
  auto args = PJRT_ARGS(Executable_DeserializeAndLoad);
  args.client = device->client.client;
  args.serialized_executable = bytes.data();
  args.serialized_executable_size = bytes.size();
  PJRT_CALL(device->library(), Executable_DeserializeAndLoad, args);
  return new ltc_executable{device, std::move(signature), own(*device, args.loaded_executable)};
}

}  // namespace ltc::pjrt
