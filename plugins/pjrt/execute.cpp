// A run: its arguments checked and handed over, its outputs and its event.
#include <algorithm>

#include "pjrt/objects.h"

namespace ltc::pjrt {
namespace {

void check_args(ltc_device* device, const Signature& signature, const ltc_execute_args& args) {
  abi::check_extensions(args.ext);
  abi::check_count("inputs", args.input_count, signature.inputs.size());
  abi::check_count("scalars", args.scalar_count, signature.scalar_count);
  abi::check_count("outputs", args.output_count, signature.outputs.size());
  for (size_t i = 0; i < args.input_count; ++i) {
    const ltc_buffer* buffer = args.inputs[i];
    const std::string which = "[execute] input " + std::to_string(i);
    if (!buffer) throw Failure(LTC_INVALID_ARGUMENT, which + " is NULL");
    if (buffer->device != device) throw Failure(LTC_INVALID_ARGUMENT, which + " is on another device");
    if (buffer->type != signature.inputs[i]) {
      throw Failure(LTC_INVALID_ARGUMENT, which + " is " + buffer->type.text() + ", compiled for " + signature.inputs[i].text());
    }
    const bool twice = std::count(args.inputs, args.inputs + args.input_count, buffer) > 1;
    if (twice && args.donate && args.donate[i]) throw Failure(LTC_INVALID_ARGUMENT, which + " is donated and given twice");
  }
}

// The inputs whose memory stays as it is, of those that the program may overwrite.
Sizes kept_inputs(const Signature& signature, const ltc_execute_args& args, bool keeps_all) {
  Sizes kept;
  for (size_t i = 0; i < args.input_count; ++i) {
    if (signature.becomes[i] == LTC_NONE) continue;
    const bool is_given = args.donate && args.donate[i] && args.inputs[i]->data.use_count() == 1;
    if (keeps_all || !is_given) kept.push_back(static_cast<int64_t>(i));
  }
  return kept;
}

struct Submitted {
  std::vector<BufferRef> outputs;
  PJRT_Event* complete;
};

Submitted submit(const ltc_executable& executable, const std::vector<PJRT_Buffer*>& inputs, const Sizes& kept) {
  const ltc_device& device = *executable.device;
  const Signature& signature = executable.signature;
  std::vector<PJRT_Buffer*> outputs(signature.outputs.size() + !signature.checks.empty());
  PJRT_ExecuteOptions options{};
  options.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE;
  options.non_donatable_input_indices = kept.data();
  options.num_non_donatable_input_indices = kept.size();
  PJRT_Buffer* const* input_list = inputs.data();
  PJRT_Buffer** output_list = outputs.data();
  Submitted submitted{{}, nullptr};
  auto args = PJRT_ARGS(LoadedExecutable_Execute);
  args.executable = executable.loaded.get();
  args.options = &options;
  args.argument_lists = &input_list;
  args.num_devices = 1;
  args.num_args = inputs.size();
  args.output_lists = &output_list;
  args.device_complete_events = &submitted.complete;
  PJRT_CALL(device.library(), LoadedExecutable_Execute, args);
  for (PJRT_Buffer* output : outputs) submitted.outputs.push_back(own(device, output));
  return submitted;
}

// Reads the program's verdict on its indices, which comes behind its outputs, and is over when the run is.
Ticket await_verdict(ltc_device* device, const Signature& signature, BufferRef verdict, PJRT_Event* complete) {
  struct Answer {
    int64_t which, index;
  };
  const auto answer = std::make_shared<Answer>();
  const ltc_buffer buffer{device, {LTC_I64, {2}}, sizeof(Answer), std::move(verdict)};
  device->queue->submit(device->library(), complete);
  return device->queue->submit(device->library(), download(*device, buffer, answer.get(), buffer.bytes),
                               [answer, checks = signature.checks]() -> std::optional<abi::Error> {
                                 if (answer->which < 0) return std::nullopt;
                                 const IndexCheck& check = checks.at(static_cast<size_t>(answer->which));
                                 return abi::Error{LTC_OUT_OF_RANGE, check.node,
                                                   "index " + std::to_string(answer->index) + " is out of bounds for dimension " +
                                                       std::to_string(check.dim) + " with size " + std::to_string(check.size)};
                               });
}

}  // namespace

// A run that may fail for its indices fails before it consumes anything: it overwrites no input, and is awaited where one is
// given.
void execute(ltc_device* device, const ltc_execute_args& args, ltc_buffer** outputs, ltc_event** done) {
  const ltc_executable& executable = *args.executable;
  const Signature& signature = executable.signature;
  check_args(device, signature, args);
  std::vector<PJRT_Buffer*> inputs;
  for (size_t i = 0; i < args.input_count; ++i) inputs.push_back(contents(*args.inputs[i]).get());
  BufferRef scalars;
  if (args.scalar_count > 0) {
    Sizes bits;
    for (size_t i = 0; i < args.scalar_count; ++i) bits.push_back(args.scalars[i].i);
    scalars = upload(*device, {LTC_I64, {static_cast<int64_t>(bits.size())}}, bits.data());
    inputs.push_back(scalars.get());
  }
  const bool donates = args.donate && std::find(args.donate, args.donate + args.input_count, 1) != args.donate + args.input_count;
  const bool may_fail = !signature.checks.empty();
  std::vector<std::unique_ptr<ltc_buffer>> made;
  for (const Type& type : signature.outputs)
    made.push_back(std::make_unique<ltc_buffer>(device, type, bytes_of(*device, type), nullptr));
  Submitted submitted = submit(executable, inputs, kept_inputs(signature, args, may_fail || !done));
  const Ticket ticket = may_fail ? await_verdict(device, signature, std::move(submitted.outputs.back()), submitted.complete)
                                 : device->queue->submit(device->library(), submitted.complete);
  if (!done || (may_fail && donates)) {
    device->queue->wait(ticket, LTC_FOREVER);
    if (const auto error = device->queue->error(ticket)) throw Failure(*error);
  }
  deliver(device, ticket, done);
  for (size_t i = 0; i < made.size(); ++i) {
    made[i]->data = std::move(submitted.outputs[i]);
    outputs[i] = made[i].release();
  }
  for (size_t i = 0; donates && i < args.input_count; ++i) {
    if (args.donate[i]) delete args.inputs[i];
  }
}

}  // namespace ltc::pjrt
