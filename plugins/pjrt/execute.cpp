// A run: its arguments checked and handed over, its outputs and its event.
#include <algorithm>
#include <array>

#include "pjrt/objects.h"

namespace ltc::pjrt {
namespace {

bool is_donated(const ltc_execute_args& args, size_t input) { return args.donate && args.donate[input]; }

void check_args(ltc_device* device, const Signature& signature, const ltc_execute_args& args) {
  plugin::check_count("inputs", args.input_count, signature.inputs.size());
  plugin::check_count("scalars", args.scalar_count, signature.scalar_count);
  plugin::check_count("outputs", args.output_count, signature.outputs.size());
  const auto check = [](bool holds, size_t input, const std::string& message) {
    if (!holds) throw Failure(LTC_INVALID_ARGUMENT, "[execute] input " + std::to_string(input) + message);
  };
  for (size_t i = 0; i < args.input_count; ++i) {
    const ltc_buffer* buffer = args.inputs[i];
    check(buffer, i, " is NULL");
    check(buffer->device == device, i, " is on another device");
    check(buffer->type == signature.inputs[i], i, " is " + buffer->type.text() + ", compiled for " + signature.inputs[i].text());
    check(!is_donated(args, i) || std::count(args.inputs, args.inputs + args.input_count, buffer) == 1, i,
          " is donated and given twice");
  }
}

// The inputs of the program. A buffer that was never written gets contents now.
std::vector<BufferRef> read_by(const ltc_device& device, const ltc_execute_args& args) {
  std::vector<BufferRef> inputs;
  for (size_t i = 0; i < args.input_count; ++i) {
    ltc_buffer& buffer = *args.inputs[i];
    if (!buffer.data) buffer.data = upload(device, buffer.type, std::vector<char>(buffer.bytes + 1).data(), nullptr);
    inputs.push_back(buffer.data);
  }
  Sizes scalars;
  for (size_t i = 0; i < args.scalar_count; ++i) scalars.push_back(args.scalars[i].i);
  if (!scalars.empty())
    inputs.push_back(upload(device, {LTC_I64, {static_cast<int64_t>(scalars.size())}}, scalars.data(), nullptr));
  return inputs;
}

// The outputs, and the verdict on indices behind them if there are checks. `complete` is set to an event.
std::vector<BufferRef> submit(const ltc_executable& executable, const ltc_execute_args& args, PJRT_Event** complete) {
  const ltc_device& device = *executable.device;
  const Signature& signature = executable.signature;
  const std::vector<BufferRef> inputs = read_by(device, args);
  Sizes kept;  // the inputs that the program may overwrite, but must not in this run: two for an owner and for `inputs`
  for (size_t i = 0; i < args.input_count; ++i) {
    const bool may_go = is_donated(args, i) && inputs[i].use_count() == 2 && signature.checks.empty();
    if (signature.becomes[i] != LTC_NONE && !may_go) kept.push_back(static_cast<int64_t>(i));
  }
  std::vector<PJRT_Buffer*> in, out(signature.outputs.size() + !signature.checks.empty());
  for (const BufferRef& input : inputs) in.push_back(input.get());
  PJRT_Buffer* const* in_list = in.data();
  PJRT_Buffer** out_list = out.data();
  auto options = PJRT_STRUCT(ExecuteOptions);
  options.non_donatable_input_indices = kept.data();
  options.num_non_donatable_input_indices = kept.size();
  auto execute = PJRT_ARGS(LoadedExecutable_Execute);
  execute.executable = executable.loaded.get();
  execute.options = &options;
  execute.argument_lists = &in_list;
  execute.num_devices = 1;
  execute.num_args = in.size();
  execute.output_lists = &out_list;
  execute.device_complete_events = complete;
  PJRT_CALL(device.library(), LoadedExecutable_Execute, execute);
  std::vector<BufferRef> outputs;
  for (PJRT_Buffer* output : out) outputs.push_back(own(device, output));
  return outputs;
}

// Reads the verdict, which is over when the run is.
Ticket await_verdict(ltc_device* device, const Signature& signature, BufferRef verdict) {
  const auto answer = std::make_shared<std::array<int64_t, 2>>();
  const auto buffer = make_buffer(device, {LTC_I64, {2}}, std::move(verdict));
  return device->queue->submit(device->library(), download(*buffer, answer->data()),
                               [answer, checks = signature.checks, good = signature.good_outputs]() -> Outcome {
                                 const auto [which, index] = *answer;
                                 if (which < 0) return {};
                                 const IndexCheck& check = checks.at(static_cast<size_t>(which));
                                 return plugin::Error{LTC_OUT_OF_RANGE, check.node,
                                                      "index " + std::to_string(index) + " is out of bounds for dimension " +
                                                          std::to_string(check.dim) + " with size " + std::to_string(check.size),
                                                      good};
                               });
}

}  // namespace

// A run that may fail for its indices overwrites no input, and is awaited where one is given away: so it fails before it has
// consumed anything.
void execute(ltc_device* device, const ltc_execute_args& args, ltc_buffer** outputs, ltc_event** done) {
  const Signature& signature = args.executable->signature;
  check_args(device, signature, args);
  std::vector<std::unique_ptr<ltc_buffer>> made;
  for (const Type& type : signature.outputs) made.push_back(make_buffer(device, type));
  PJRT_Event* complete = nullptr;
  std::vector<BufferRef> data = submit(*args.executable, args, &complete);
  Ticket ticket = device->queue->submit(device->library(), complete);
  if (!signature.checks.empty()) {
    ticket = await_verdict(device, signature, std::move(data.back()));
    if (args.donate && std::count(args.donate, args.donate + args.input_count, 1) > 0) {
      device->queue->wait(ticket.end, LTC_FOREVER);
      if (const Outcome error = device->queue->outcome(ticket)) throw Failure(*error);
    }
  }
  *done = new ltc_event{device, ticket};
  for (size_t i = 0; i < made.size(); ++i) {
    made[i]->data = std::move(data[i]);
    outputs[i] = made[i].release();
  }
  for (size_t i = 0; i < args.input_count; ++i) {
    if (is_donated(args, i)) delete args.inputs[i];
  }
}

}  // namespace ltc::pjrt
