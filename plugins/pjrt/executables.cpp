// Programs made ready to run, and their form on disk.
#include <charconv>
#include <cstring>
#include <span>

#include "pjrt/objects.h"

namespace ltc::pjrt {
namespace {

// ---- compiling

// Fields of a protocol buffer, one behind the other.
std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes += static_cast<char>(value);
}
std::string number_field(uint64_t id, uint64_t value) { return varint(id << 3) + varint(value); }
std::string message_field(uint64_t id, const std::string& message) {
  return varint(id << 3 | 2) + varint(message.size()) + message;
}

// XLA's CompileOptionsProto: one replica on this device, and no flag that departs from the op set: rounding to a narrow type is
// not skipped, and a NaN is not lost.
std::string compile_options(const Facts& facts) {
  const std::string id = varint(static_cast<uint64_t>(facts.id));
  const std::string assignment = number_field(1, 1) + number_field(2, 1) + message_field(3, message_field(1, id));
  std::string options = message_field(3, number_field(4, 1) + number_field(5, 1) + message_field(9, assignment));
  const auto switch_off = [&](const char* flag) {
    options += message_field(7, message_field(1, flag) + message_field(2, number_field(2, 0)));
  };
  switch_off("xla_allow_excess_precision");
  if (facts.is_host) switch_off("xla_cpu_enable_fast_min_max");
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
  const Library& library = device.library();
  return ExecutableRef(executable, [&library](PJRT_LoadedExecutable* ended) {
    auto args = PJRT_ARGS(LoadedExecutable_Destroy);
    args.executable = ended;
    if (PJRT_Error* error = library.api().PJRT_LoadedExecutable_Destroy(&args)) (void)library.take(error);
  });
}

// ---- as bytes: a header, the signature as words, and what the library writes

struct Header {
  uint64_t magic, checksum, words;  // the sum of all that follows
};
constexpr uint64_t kMagic = 0x31'74'72'6A'70'63'74'6C;  // "ltcpjrt1"

uint64_t checksum(std::string_view bytes) {
  uint64_t sum = 0xCBF29CE484222325;
  for (const char byte : bytes) sum = (sum ^ static_cast<uint8_t>(byte)) * 0x100000001B3;
  return sum;
}

using Words = std::vector<int64_t>;

void put(Words& words, const std::vector<Type>& types) {
  words.push_back(static_cast<int64_t>(types.size()));
  for (const Type& type : types) {
    words.insert(words.end(), {type.dtype, type.rank()});
    words.insert(words.end(), type.sizes.begin(), type.sizes.end());
  }
}

Words words_of(const Signature& signature) {
  Words words{signature.scalar_count};
  put(words, signature.inputs);
  put(words, signature.outputs);
  words.insert(words.end(), signature.becomes.begin(), signature.becomes.end());
  for (const IndexCheck& check : signature.checks) words.insert(words.end(), {check.node, check.dim, check.size});
  return words;
}

// The words were checked by their sum, so they are what words_of wrote.
Signature signature_of(std::span<const int64_t> words) {
  Signature signature;
  const auto next = [&] {
    if (words.empty()) throw Failure(LTC_DATA_CORRUPT, "a saved executable is too short");
    const int64_t word = words[0];
    words = words.subspan(1);
    return word;
  };
  signature.scalar_count = static_cast<uint32_t>(next());
  for (auto* types : {&signature.inputs, &signature.outputs}) {
    for (int64_t i = next(); i > 0; --i) {
      Type type{static_cast<ltc_dtype>(next()), {}};
      for (int64_t rank = next(); rank > 0; --rank) type.sizes.push_back(next());
      types->push_back(std::move(type));
    }
  }
  for (size_t i = 0; i < signature.inputs.size(); ++i) signature.becomes.push_back(static_cast<uint32_t>(next()));
  while (!words.empty()) {
    const auto node = static_cast<uint32_t>(next());
    const int64_t dim = next();
    signature.checks.push_back({node, dim, next()});
  }
  return signature;
}

}  // namespace

ltc_executable* compile(ltc_device* device, const Lowered& lowered) {
  PJRT_Program program{};
  program.struct_size = PJRT_Program_STRUCT_SIZE;
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
  } catch (const Failure& failure) {  // what one version of XLA refuses another may take; the host goes on without it
    abi::Error error = failure.error();
    error.node = find_node(error.message);
    if (error.code == LTC_INVALID_ARGUMENT) error.code = LTC_UNSUPPORTED;
    throw Failure(error);
  }
  return new ltc_executable{device, lowered.signature, own(*device, args.executable)};
}

std::string save(const ltc_executable& executable) {
  const Library& library = executable.device->library();
  auto get = PJRT_ARGS(LoadedExecutable_GetExecutable);
  get.loaded_executable = executable.loaded.get();
  PJRT_CALL(library, LoadedExecutable_GetExecutable, get);
  const auto end = [&](PJRT_Executable* ended) {
    auto args = PJRT_ARGS(Executable_Destroy);
    args.executable = ended;
    if (PJRT_Error* error = library.api().PJRT_Executable_Destroy(&args)) (void)library.take(error);
  };
  const std::unique_ptr<PJRT_Executable, decltype(end)> unloaded(get.executable, end);
  auto args = PJRT_ARGS(Executable_Serialize);
  args.executable = unloaded.get();
  PJRT_CALL(library, Executable_Serialize, args);
  const std::unique_ptr<PJRT_SerializedExecutable, decltype(args.serialized_executable_deleter)> bytes(
      args.serialized_executable, args.serialized_executable_deleter);
  const Words words = words_of(executable.signature);
  std::string body(reinterpret_cast<const char*>(words.data()), words.size() * sizeof(int64_t));
  body.append(args.serialized_bytes, args.serialized_bytes_size);
  const Header header{kMagic, checksum(body), words.size()};
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + body;
}

ltc_executable* load(ltc_device* device, std::string_view bytes) {
  Header header{};
  if (bytes.size() < sizeof header) throw Failure(LTC_DATA_CORRUPT, "a saved executable is too short");
  std::memcpy(&header, bytes.data(), sizeof header);
  bytes.remove_prefix(sizeof header);
  if (header.magic != kMagic) throw Failure(LTC_UNSUPPORTED, "a saved executable of another version");
  if (header.checksum != checksum(bytes) || header.words > bytes.size() / sizeof(int64_t)) {
    throw Failure(LTC_DATA_CORRUPT, "a saved executable is damaged");
  }
  Words words(header.words);
  std::memcpy(words.data(), bytes.data(), words.size() * sizeof(int64_t));
  bytes.remove_prefix(words.size() * sizeof(int64_t));
  auto args = PJRT_ARGS(Executable_DeserializeAndLoad);
  args.client = device->client.client;
  args.serialized_executable = bytes.data();
  args.serialized_executable_size = bytes.size();
  PJRT_CALL(device->library(), Executable_DeserializeAndLoad, args);
  ExecutableRef loaded = own(*device, args.loaded_executable);
  return new ltc_executable{device, signature_of(words), std::move(loaded)};
}

}  // namespace ltc::pjrt
