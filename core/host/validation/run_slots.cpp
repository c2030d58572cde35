// The slots of runs and events.
#include "core/host/validation/answers.h"
#include "core/host/validation/slots.h"
#include "core/host/validation/submit.h"
#include "ltc/entry.h"

namespace ltc::host::validation {
namespace {

// ---- execute

using Inputs = std::vector<Use<Buffer>>;

bool is_donated(const ltc_execute_args& args, size_t input) { return args.donate && args.donate[input]; }

// The symbols of the run, checked; null where there are none, or wrong ones.
const int64_t* check_symbols(Call& call, const Signature& signature, const ltc_extension* chain) {
  const auto* given = reinterpret_cast<const ltc_symbol_values*>(ltc_find_extension(chain, LTC_EXTENSION_SYMBOLIC));
  const bool is_good = signature.is_symbolic
                           ? given && given->head.struct_size >= LTC_SIZE_TO(ltc_symbol_values, values) &&
                                 given->symbol_count == signature.symbol_count && (given->values || given->symbol_count == 0)
                           : !given;
  return call.require(is_good, "execute.symbols", signature.symbol_count, " symbols") && given ? given->values : nullptr;
}

void check_scalars(Call& call, const Signature& signature, const ltc_execute_args& args) {
  const size_t count = signature.scalars.size();
  if (!call.require(args.scalar_count == count, "execute.scalar_count", args.scalar_count, " instead of ", count)) return;
  for (size_t i = 0; i < count; ++i) {
    const bool is_good = signature.scalars[i] != LTC_BOOL || args.scalars[i].u <= 1;
    call.require(is_good, "execute.scalar_bool", "scalar ", i, " is ", args.scalars[i].i);
  }
}

void check_inputs(Call& call, const Signature& signature, const ltc_execute_args& args, const Inputs& inputs,
                  const int64_t* symbols) {
  const size_t count = signature.inputs.size();
  if (!call.require(inputs.size() == count, "execute.input_count", inputs.size(), " instead of ", count)) return;
  for (size_t i = 0; i < count; ++i) {
    const bool may_donate = !is_donated(args, i) || (args.donate[i] == 1 && signature.may_donate[i]);
    call.require(may_donate, "execute.donate", "input ", i);
    if (!inputs[i]->type || (signature.is_symbolic && !symbols)) continue;
    const Type wanted = symbols ? signature.inputs[i].with(symbols) : signature.inputs[i];
    call.require(*inputs[i]->type == wanted, "execute.input_type", "input ", i, " is ", inputs[i]->type->text(), ", not ",
                 wanted.text());
  }
}

// One that is donated is no other input. Called for every executable, also for one that was loaded.
void check_donations(Call& call, const ltc_execute_args& args) {
  for (size_t i = 0; i < args.input_count; ++i) {
    if (!is_donated(args, i)) continue;
    const auto times = std::count(args.inputs, args.inputs + args.input_count, args.inputs[i]);
    call.require(times == 1, "execute.donated_once", "input ", i, " is there ", times, " times");
  }
}

// A run: the host's arguments with the plugin's handles in place of the layer's.
class Run {
 public:
  Run(Call& call, const Use<Device>& device, const ltc_execute_args& args)
      : call_(call),
        device_(*device.get()),
        executable_(call.use_of<Executable>(device, args.executable)),
        host_(args),
        args_(args) {
    for (size_t i = 0; i < args.input_count; ++i) inputs_.push_back(call.use_of<Buffer>(device, args.inputs[i]));
    if (!call.is_possible()) return;
    check_donations(call, args);
    check();
    if (!call.is_possible()) return;
    for (const Use<Buffer>& input : inputs_) handles_.push_back(input.real());
    args_.struct_size = std::min(args.struct_size, sizeof args_);
    args_.executable = executable_.real();
    args_.inputs = handles_.data();
    outputs_.assign(args.output_count, Call::unwritten<ltc_buffer>());
  }

  const ltc_execute_args* args() const { return &args_; }
  ltc_buffer** outputs() { return outputs_.data(); }
  size_t node_count() const { return signature() ? signature()->node_count : Call::kAnyNode; }
  const std::shared_ptr<const Signature>& signature() const { return executable_->signature; }

  void let_go(bool leaving) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (is_donated(host_, i)) call_.instance().let_go(inputs_[i].get(), leaving);
    }
  }

  // After a submit that succeeded.
  void consume() {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!is_donated(host_, i)) continue;
      call_.instance().forget(inputs_[i].get());
      Registry::instance().end(inputs_[i].get(), Kind::kBuffer);
    }
  }

  void check_outputs_unchanged() {
    const bool is_unchanged = std::ranges::all_of(outputs_, [](ltc_buffer* one) { return one == Call::unwritten<ltc_buffer>(); });
    call_.require(is_unchanged, "out.unchanged", "an output was written with an error");
  }

  void give_outputs(ltc_buffer** out) {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      ltc_buffer* const real = outputs_[i];
      const bool is_given = real && real != Call::unwritten<ltc_buffer>();
      out[i] = nullptr;
      if (!call_.require(is_given, "execute.outputs_not_null", "output ", i, " of ", outputs_.size())) continue;
      auto* made = new Buffer(Kind::kBuffer, call_.instance(), &device_, real);
      if (i < types_.size()) made->type = types_[i];
      const auto [object, is_new] = call_.instance().adopt(made);
      call_.require(is_new, "execute.outputs_once", "output ", i, " of ", outputs_.size());
      out[i] = Call::handle_of<Buffer>(object);
    }
  }

 private:
  void check() {
    if (!signature()) return;  // loaded: the layer does not know its graph
    const Signature& graph = *signature();
    const int64_t* const symbols = check_symbols(call_, graph, host_.ext);
    check_inputs(call_, graph, host_, inputs_, symbols);
    check_scalars(call_, graph, host_);
    call_.require(host_.output_count == graph.outputs.size(), "execute.output_count", host_.output_count, " instead of ",
                  graph.outputs.size());
    if (graph.is_symbolic && !symbols) return;
    for (const Type& type : graph.outputs) types_.push_back(symbols ? type.with(symbols) : type);
  }

  Call& call_;
  Device& device_;
  Use<Executable> executable_;
  const ltc_execute_args& host_;
  ltc_execute_args args_;
  Inputs inputs_;
  std::vector<ltc_buffer*> handles_, outputs_;
  std::vector<Type> types_;  // of the outputs; empty: unknown
};

ltc_status* LTC_CALL execute(ltc_device* handle, const ltc_execute_args* args, ltc_buffer** outputs, ltc_event** done) {
  Call call("execute");
  const Use<Device> device = call.use<Device>(handle);
  if (!call.is_possible() || !call.sized(args, LTC_SIZE_TO(ltc_execute_args, run_id)) ||
      !call.not_null(args->inputs, "inputs", args->input_count) || !call.not_null(args->scalars, "scalars", args->scalar_count) ||
      !call.not_null(outputs, "outputs", args->output_count))
    return call.refusal();
  call.sends(args->ext);
  Run run(call, device, *args);
  if (!call.is_possible()) return call.refusal();
  Submit submit(call, device, done);
  if (!call.is_possible()) return call.refusal();
  run.let_go(true);
  constexpr Codes kCodes = kRunCodes | code_bits(LTC_OUT_OF_RANGE);
  ltc_status* status = nullptr;
  try {
    status = call.ask(kCodes, run.node_count(), [&] {
      return call.instance().plugin_api.execute(device.real(), run.args(), run.outputs(), submit.event());
    });
  } catch (...) {
    run.consume();  // so the host takes it
    throw;
  }
  if (status) {
    run.let_go(false);
    run.check_outputs_unchanged();
  } else {
    run.consume();
    run.give_outputs(outputs);
  }
  return submit.give(status, args->output_count, run.signature());
}

// ---- events

// The state of an event and its device at one time.
struct Known {
  Answer answer;
  uint64_t over;
  bool lost;

  static Known of(const Event& event) {
    std::lock_guard guard(event.device->lock);
    return {event.answer, event.device->over, event.device->lost};
  }
};

void learn(Event& event, bool has_failed) {
  std::lock_guard guard(event.device->lock);
  event.answer = has_failed ? Answer::kFailed : Answer::kGood;
  event.device->over = std::max(event.device->over, event.sequence);
}

ltc_status* LTC_CALL event_wait(ltc_event* handle, uint64_t timeout_ns, bool* finished) {
  Call call("event_wait");
  const Use<Event> event = call.use<Event>(handle);
  if (!call.is_possible() || !call.not_null(finished, "finished")) return call.refusal();
  call.require(!*finished, "out.preset", "finished");
  const Known before = Known::of(*event.get());
  const size_t nodes = !event->outputs ? 0 : event->signature ? event->signature->node_count : Call::kAnyNode;
  constexpr Codes kCodes = kRunCodes | code_bits(LTC_OUT_OF_RANGE, LTC_NOT_FOUND, LTC_DATA_CORRUPT);
  bool over = false;
  ltc_status* const status =
      call.ask(kCodes, nodes, [&] { return call.instance().plugin_api.event_wait(event.real(), timeout_ns, &over); });
  const bool is_lost = status && call.instance().host.status_code(status) == LTC_DEVICE_LOST;
  if (is_lost) event->device->lost = true;
  if (!is_lost && !before.lost) {
    call.require(over || status || timeout_ns != LTC_FOREVER, "event_wait.forever");
    call.require(over || before.answer == Answer::kPending, "event_wait.stays_over");
    const bool is_same = !over || before.answer == Answer::kPending || (before.answer == Answer::kFailed) == (status != nullptr);
    call.require(is_same, "event_wait.same_answer", status ? "an error after none" : "no error after one");
    call.require(over || status || event->sequence >= before.over, "event_wait.in_order", "submission ", event->sequence,
                 " goes on and ", before.over, " was over");
  }
  if (over) learn(*event.get(), status != nullptr);
  *finished = over;
  return status;
}

void LTC_CALL event_destroy(ltc_event* handle) {
  end_object<Event, &ltc_plugin_api::event_destroy>("event_destroy", handle, "event_destroy.no_wait");
}

ltc_status* LTC_CALL event_good_outputs(ltc_event* handle, size_t output_count, uint8_t* good) {
  Call call("event_good_outputs");
  const Use<Event> event = call.use<Event>(handle);
  if (!call.is_possible()) return call.refusal();
  const bool has_failed = event->outputs && Known::of(*event.get()).answer == Answer::kFailed;
  call.require(has_failed, "event_good_outputs.after_error");
  call.require(output_count == event->outputs.value_or(output_count), "event_good_outputs.count", output_count, " instead of ",
               event->outputs.value_or(0));
  check_zeroed(call, good, output_count, "good");
  if (!call.is_possible()) return call.refusal();
  ltc_status* const status =
      call.ask(0, 0, [&] { return call.instance().plugin_api.event_good_outputs(event.real(), output_count, good); });
  check_unchanged(call, status, good, output_count, "good");
  const bool are_flags = std::all_of(good, good + output_count, [](uint8_t one) { return one <= 1; });
  call.require(are_flags, "event_good_outputs.values");
  return status;
}

}  // namespace

void set_run_slots(Instance& instance) {
  const ltc_plugin_api& has = instance.plugin_api;
  ltc_plugin_api& table = instance.table;
  if (has.execute) table.execute = execute;
  if (has.event_wait) table.event_wait = event_wait;
  if (has.event_destroy) table.event_destroy = event_destroy;
  if (has.event_good_outputs) table.event_good_outputs = event_good_outputs;
}

}  // namespace ltc::host::validation
