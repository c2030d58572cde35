// The slots that make programs and executables.
#include "core/host/validation/answers.h"
#include "core/host/validation/graph.h"
#include "core/host/validation/slots.h"

namespace ltc::host::validation {
namespace {

ltc_status* LTC_CALL claims(ltc_device* handle, const ltc_claims_args* args, uint32_t* cluster) {
  Call call("claims");
  const Use<Device> device = call.use<Device>(handle);
  if (!call.is_possible() || !call.sized(args, LTC_SIZE_TO(ltc_claims_args, graph)) || !check_graph(call, args->graph))
    return call.refusal();
  call.sends(args->ext);
  const size_t count = args->graph->node_count;
  check_zeroed(call, cluster, count, "cluster");
  if (!call.is_possible()) return call.refusal();
  const auto ask = [&](uint32_t* out) {
    return call.ask(0, count, [&] { return call.instance().plugin_api.claims(device.real(), args, out); });
  };
  ltc_status* const status = ask(cluster);
  check_unchanged(call, status, cluster, count, "cluster");
  if (status) return status;
  std::vector<uint32_t> again(count, 0);
  ltc_status* const second = ask(again.data());
  const bool is_same = !second && std::equal(again.begin(), again.end(), cluster);
  const bool is_lost = second && call.instance().host.status_code(second) == LTC_DEVICE_LOST;
  call.require(is_same || is_lost, "claims.deterministic", "asked again, it answers otherwise");
  call.instance().host.status_destroy(second);
  return nullptr;
}

ltc_status* LTC_CALL lower(ltc_device* handle, const ltc_lower_args* args, ltc_program** program) {
  Call call("lower");
  const Use<Device> device = call.use<Device>(handle);
  if (!call.is_possible() || !call.sized(args, LTC_SIZE_TO(ltc_lower_args, graph)) || !check_graph(call, args->graph) ||
      !call.not_null(program, "program"))
    return call.refusal();
  call.sends(args->ext);
  const ltc_symbolic_sizes* const symbols = check_symbols(call, args->ext, *args->graph);
  auto* made = Call::unwritten<ltc_program>();
  ltc_status* const status = call.ask(code_bits(LTC_RESOURCE_EXHAUSTED), args->graph->node_count,
                                      [&] { return call.instance().plugin_api.lower(device.real(), args, &made); });
  return call.give<Program>(status, made, program, [&] {
    auto* object = new Program(Kind::kProgram, call.instance(), device.get(), made);
    object->signature = std::make_shared<const Signature>(Signature::of(*args->graph, symbols));
    return object;
  });
}

void LTC_CALL program_destroy(ltc_program* handle) {
  end_object<Program, &ltc_plugin_api::program_destroy>("program_destroy", handle);
}

ltc_status* LTC_CALL compile(ltc_device* handle, const ltc_compile_args* args, ltc_executable** executable) {
  Call call("compile");
  const Use<Device> device = call.use<Device>(handle);
  if (!call.is_possible() || !call.sized(args, LTC_SIZE_TO(ltc_compile_args, effort)) || !call.not_null(executable, "executable"))
    return call.refusal();
  call.sends(args->ext);
  const Use<Program> program = call.use_of<Program>(device, args->program);
  if (!call.is_possible()) return call.refusal();
  ltc_compile_args copy = *args;
  copy.struct_size = std::min(args->struct_size, sizeof copy);
  copy.program = program.real();
  auto* made = Call::unwritten<ltc_executable>();
  ltc_status* const status = call.ask(code_bits(LTC_RESOURCE_EXHAUSTED), program->signature->node_count,
                                      [&] { return call.instance().plugin_api.compile(device.real(), &copy, &made); });
  return call.give<Executable>(status, made, executable, [&] {
    auto* object = new Executable(Kind::kExecutable, call.instance(), device.get(), made);
    object->signature = program->signature;
    return object;
  });
}

void LTC_CALL executable_destroy(ltc_executable* handle) {
  end_object<Executable, &ltc_plugin_api::executable_destroy>("executable_destroy", handle);
}

// A slot that writes an object into a sink.
template <typename T, typename Slot>
ltc_status* write_into(const char* name, const typename T::Handle* handle, const ltc_sink* sink, Slot&& slot) {
  Call call(name);
  const Use<T> object = call.use<T>(handle);
  if (!call.is_possible()) return call.refusal();
  const Lent lent(call, sink);
  if (!call.is_possible()) return call.refusal();
  ltc_status* const status = call.ask(0, 0, [&] { return slot(call.instance().plugin_api, object.real(), lent.get()); });
  call.require(!lent.refused() || !status, "sink.gives_up", "an error was returned");
  return status;
}

ltc_status* LTC_CALL program_text(const ltc_program* program, const ltc_sink* sink) {
  return write_into<Program>(
      "program_text", program, sink,
      [](const ltc_plugin_api& api, ltc_program* real, const ltc_sink* lent) { return api.program_text(real, lent); });
}

ltc_status* LTC_CALL executable_save(const ltc_executable* executable, const ltc_sink* sink) {
  return write_into<Executable>(
      "executable_save", executable, sink,
      [](const ltc_plugin_api& api, ltc_executable* real, const ltc_sink* lent) { return api.executable_save(real, lent); });
}

ltc_status* LTC_CALL executable_load(ltc_device* handle, const ltc_load_args* args, ltc_executable** executable) {
  Call call("executable_load");
  const Use<Device> device = call.use<Device>(handle);
  if (!call.is_possible() || !call.sized(args, LTC_SIZE_TO(ltc_load_args, size)) ||
      !call.not_null(args->data, "data", args->size) || !call.not_null(executable, "executable"))
    return call.refusal();
  call.sends(args->ext);
  call.require(reinterpret_cast<uintptr_t>(args->data) % 64 == 0, "executable_load.alignment", args->data);
  auto* made = Call::unwritten<ltc_executable>();
  ltc_status* const status = call.ask(code_bits(LTC_DATA_CORRUPT, LTC_RESOURCE_EXHAUSTED), 0,
                                      [&] { return call.instance().plugin_api.executable_load(device.real(), args, &made); });
  return call.give<Executable>(status, made, executable,
                               [&] { return new Executable(Kind::kExecutable, call.instance(), device.get(), made); });
}

}  // namespace

void set_program_slots(Instance& instance) {
  const ltc_plugin_api& has = instance.plugin_api;
  ltc_plugin_api& table = instance.table;
  if (has.claims) table.claims = claims;
  if (has.lower) table.lower = lower;
  if (has.program_destroy) table.program_destroy = program_destroy;
  if (has.compile) table.compile = compile;
  if (has.executable_destroy) table.executable_destroy = executable_destroy;
  if (has.program_text) table.program_text = program_text;
  if (has.executable_save) table.executable_save = executable_save;
  if (has.executable_load) table.executable_load = executable_load;
}

}  // namespace ltc::host::validation
