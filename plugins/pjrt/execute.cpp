// A run: its arguments checked and handed over, its outputs and its event.
#include <algorithm>
#include <array>

#include "pjrt/objects.h"

namespace ltc::pjrt {
namespace {

bool is_donated(const ltc_execute_args& args, size_t input) { return args.donate && args.donate[input]; }

void check_args(ltc_device* device, const Signature& signature, const ltc_execute_args& args) {
  plugin::check_counts(args, signature.inputs.size(), signature.scalar_count, signature.outputs.size());
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

// Contents from host memory that ends now.
BufferRef constant(const ltc_device& device, const Type& type, const void* data) {
  const auto [made, event] = upload(device, type, data, true);
  if (event) (void)PJRT_TRY(device.library(), Event_Destroy, .event = event);
  return made;
}

// The inputs of the program. A buffer that was never written gets contents now.
std::vector<BufferRef> read_by(const ltc_device& device, const ltc_execute_args& args) {
  std::vector<BufferRef> inputs;
  for (size_t i = 0; i < args.input_count; ++i) {
    ltc_buffer& buffer = *args.inputs[i];
    if (!buffer.data) buffer.data = constant(device, buffer.type, std::vector<char>(buffer.bytes + 1).data());
    inputs.push_back(buffer.data);
  }
  Sizes scalars;
  for (size_t i = 0; i < args.scalar_count; ++i) scalars.push_back(args.scalars[i].i);
  if (!scalars.empty()) inputs.push_back(constant(device, {LTC_I64, {static_cast<int64_t>(scalars.size())}}, scalars.data()));
  return inputs;
}

// The outputs, and the verdict on indices behind them if there are checks; else `complete` is set to an event.
std::vector<BufferRef> run(const ltc_executable& executable, const ltc_execute_args& args, PJRT_Event** complete) {
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
  auto options =
      PJRT_STRUCT(ExecuteOptions, .non_donatable_input_indices = kept.data(), .num_non_donatable_input_indices = kept.size());
  PJRT_CALL(device.library(), LoadedExecutable_Execute, .executable = executable.loaded.get(), .options = &options,
            .argument_lists = &in_list, .num_devices = 1, .num_args = in.size(), .output_lists = &out_list,
            .device_complete_events = signature.checks.empty() ? complete : nullptr);
  std::vector<BufferRef> outputs;
  for (PJRT_Buffer* output : out) outputs.push_back(PJRT_OWN(device.library(), Buffer, buffer, output));
  return outputs;
}

// Throws if the verdict of a run, which `answer` holds by then, is that an index was bad.
Verdict verdict_of(const Signature& signature, std::shared_ptr<const std::array<int64_t, 2>> answer) {
  return [answer, checks = signature.checks, good = signature.good_outputs] {
    const auto [which, index] = *answer;
    if (which < 0) return;
    const IndexCheck& check = checks.at(static_cast<size_t>(which));
    throw Failure({LTC_OUT_OF_RANGE, check.node,
                   "index " + std::to_string(index) + " is out of bounds for dimension " + std::to_string(check.dim) +
                       " with size " + std::to_string(check.size),
                   good});
  };
}

}  // namespace

// A run that may fail for its indices overwrites no input, and is awaited where one is given away: so it fails before it has
// consumed anything.
void execute(ltc_device* device, const ltc_execute_args& args, ltc_buffer** outputs, ltc_event*& done) {
  const Signature& signature = args.executable->signature;
  check_args(device, signature, args);
  std::vector<std::unique_ptr<ltc_buffer>> made;
  for (const Type& type : signature.outputs) made.push_back(make_buffer(device, type));
  PJRT_Event* event = nullptr;
  std::vector<BufferRef> data = run(*args.executable, args, &event);
  Verdict verdict;
  if (!signature.checks.empty()) {  // the verdict comes with the other outputs
    const auto answer = std::make_shared<std::array<int64_t, 2>>();
    event = download(*make_buffer(device, {LTC_I64, {2}}, std::move(data.back())), answer->data());
    verdict = verdict_of(signature, answer);
  }
  const bool must_wait = verdict && args.donate && std::count(args.donate, args.donate + args.input_count, 1) > 0;
  const Completion over = device->queue->submit(device->library(), event, std::move(verdict));
  if (must_wait) over.get();
  done = new ltc_event{device, over};
  for (size_t i = 0; i < made.size(); ++i) {
    made[i]->data = std::move(data[i]);
    outputs[i] = made[i].release();
  }
  for (size_t i = 0; i < args.input_count; ++i) {
    if (is_donated(args, i)) delete args.inputs[i];
  }
}

}  // namespace ltc::pjrt
