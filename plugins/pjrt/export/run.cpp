// Runs a folder of modules. Beside the folder it needs no case, no reference and no plugin.
#include <algorithm>
#include <span>

#include "conformance/ops/compare.h"
#include "pjrt/export/folder.h"
#include "pjrt/export/npy.h"
#include "pjrt/objects.h"

namespace ltc::pjrt {
namespace {

void await(const Library& library, PJRT_Event* event) {
  if (!event) return;
  const auto owner = PJRT_OWN(library, Event, event, event);
  PJRT_CALL(library, Event_Await, .event = event);
}

Type type_of(const Tensor& tensor) { return {static_cast<ltc_dtype>(tensor.dtype), tensor.shape}; }

Array read(const std::filesystem::path& folder, const Tensor& tensor) {
  Array array = read_npy(folder / tensor.file, tensor.dtype);
  if (array.sizes != tensor.shape) fail(Code::kDataCorrupt, tensor.file, " has another shape than the index says");
  return array;
}

std::shared_ptr<ltc_executable> compiled(ltc_device& device, std::string text) {
  ltc_program program{&device, {std::move(text), {}}};
  ltc_compile_args args{};
  args.program = &program;
  ltc_executable* executable = nullptr;
  compile(&device, args, executable);
  return std::shared_ptr<ltc_executable>(executable);
}

size_t output_count(const Library& library, PJRT_LoadedExecutable* loaded) {
  const auto got = PJRT_CALL(library, LoadedExecutable_GetExecutable, .loaded_executable = loaded);
  const auto owner = PJRT_OWN(library, Executable, executable, got.executable);
  return PJRT_CALL(library, Executable_NumOutputs, .executable = got.executable).num_outputs;
}

std::vector<BufferRef> execute(ltc_device& device, PJRT_LoadedExecutable* loaded, const std::vector<BufferRef>& inputs,
                               size_t outputs) {
  const Library& library = device.library();
  std::vector<PJRT_Buffer*> in, out(outputs);
  for (const BufferRef& input : inputs) in.push_back(input.get());
  PJRT_Buffer* const* in_list = in.data();
  PJRT_Buffer** out_list = out.data();
  PJRT_Event* complete = nullptr;
  auto options = PJRT_STRUCT(ExecuteOptions);
  PJRT_CALL(library, LoadedExecutable_Execute, .executable = loaded, .options = &options, .argument_lists = &in_list,
            .num_devices = 1, .num_args = in.size(), .output_lists = &out_list, .device_complete_events = &complete);
  std::vector<BufferRef> made;
  for (PJRT_Buffer* output : out) made.push_back(PJRT_OWN(library, Buffer, buffer, output));
  await(library, complete);
  return made;
}

bool has_type(const Library& library, const BufferRef& buffer, const Type& type) {
  const auto dims = PJRT_CALL(library, Buffer_Dimensions, .buffer = buffer.get());
  return PJRT_CALL(library, Buffer_ElementType, .buffer = buffer.get()).type == element(type.dtype).buffer &&
         std::ranges::equal(std::span(dims.dims, dims.num_dims), type.sizes);
}

// Empty if every output is within its tolerance.
std::string run(ltc_device& device, const std::filesystem::path& folder, const ModuleEntry& entry) {
  const Library& library = device.library();
  const auto executable = compiled(device, read_file(folder / entry.file));
  if (const size_t count = output_count(library, executable->loaded.get()); count != entry.outputs.size())
    return cat("the module has ", count, " outputs, the index ", entry.outputs.size());
  std::vector<BufferRef> inputs;
  for (const Tensor& tensor : entry.inputs) {
    const Array array = read(folder, tensor);
    const auto [buffer, event] = upload(device, type_of(tensor), array.bytes.data(), true);
    inputs.push_back(buffer);
    await(library, event);
  }
  std::string wrong;
  const std::vector<BufferRef> outputs = execute(device, executable->loaded.get(), inputs, entry.outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& tensor = entry.outputs[i];
    const Array expected = read(folder, tensor);
    if (!has_type(library, outputs[i], type_of(tensor))) return cat("output ", i, " is no ", type_of(tensor).text());
    Array got(tensor.dtype, tensor.shape);
    std::ranges::fill(got.bytes, std::byte{0xAA});  // so that nothing read is nothing good
    await(library, download(*make_buffer(&device, type_of(tensor), outputs[i]), got.bytes.data()));
    const std::string text = conformance::difference(got, expected, tensor.tolerance);
    if (!text.empty()) wrong += cat(wrong.empty() ? "" : "; ", "output ", i, ": ", text);
  }
  return wrong;
}

}  // namespace

void run_folder(const std::string& library, const std::filesystem::path& folder, const std::string& pattern,
                const std::function<void(const std::string& name, const std::string& wrong)>& report) {
  const Index index = read_index(folder);
  const Client client(library, 1);
  if (client.devices.empty()) fail(Code::kNotFound, library, " has no device");
  ltc_device device{nullptr, client, client.devices[0]};
  for (const ModuleEntry& entry : index.modules) {
    if (!matches(entry.name, pattern)) continue;
    std::string wrong;
    try {
      wrong = run(device, folder, entry);
    } catch (const std::exception& error) {
      wrong = error.what();
      if (wrong.empty()) wrong = "an error without a message";
    }
    report(entry.name, wrong);
  }
}

}  // namespace ltc::pjrt
