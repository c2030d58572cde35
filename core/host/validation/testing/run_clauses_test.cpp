// Clauses of runs and events.
#include "core/host/validation/testing/fake.h"
#include "ltc/symbolic.h"

namespace ltc::host::validation {
namespace {

// ---- the arguments of a run

void run_with(Fake& fake, void (*change)(FakeRun&)) {
  FakeRun run(fake);
  change(run);
  run.submit();
}
void no_input(Fake& fake) {
  run_with(fake, [](FakeRun& run) { run.args.input_count = 0; });
}
void an_input_of_another_size(Fake& fake) {
  run_with(fake, [](FakeRun& run) { run.input = run.fake.buffer(run.device, {4}); });
}
void a_donation_by_a_two(Fake& fake) {
  run_with(fake, [](FakeRun& run) {
    static constexpr uint8_t two = 2;
    run.args.donate = &two;
  });
}
void a_donated_input_twice(Fake& fake) {
  testing::CGraph graph;
  const uint32_t x = graph.param(LTC_F32, {3}, 0, 0), y = graph.param(LTC_F32, {3});
  graph.output(graph.node("aten::mul.Tensor", {x, y}, LTC_F32, {3}));
  FakeRun run(fake);
  ltc_buffer* const inputs[] = {run.input, run.input};
  const uint8_t donate[] = {1, 0};
  run.args.executable = fake.compile(run.device, graph.get());
  run.args.input_count = 2;
  run.args.inputs = inputs;
  run.args.donate = donate;
  run.args.scalar_count = 0;
  run.submit();
}
void no_scalar(Fake& fake) {
  run_with(fake, [](FakeRun& run) { run.args.scalar_count = 0; });
}
void a_bool_of_two(Fake& fake) {
  testing::CGraph graph;
  const uint32_t x = graph.param(LTC_F32, {3}), flag = graph.scalar(LTC_BOOL);
  graph.output(graph.node("aten::mul.Tensor", {x, flag}, LTC_F32, {3}));
  FakeRun run(fake);
  run.args.executable = fake.compile(run.device, graph.get());
  run.scalar.i = 2;
  run.submit();
}
void another_output_count(Fake& fake) {
  run_with(fake, [](FakeRun& run) { run.args.output_count = 0; });
}

constexpr ltc_extension kListed{sizeof(ltc_extension), LTC_EXTENSION_SYMBOLIC, 1, nullptr};

// A graph x -> -x of 2 elements, or of as many as its symbol says.
ltc_executable* symbolic(FakeRun& run) {
  const ltc_symbolic_number numbers[] = {{0, LTC_NONE, 0, 0, 1, 0}, {1, LTC_NONE, 0, 0, 1, 0}};
  auto symbols = sized_extension<ltc_symbolic_sizes>(LTC_EXTENSION_SYMBOLIC, 1);
  symbols.symbol_count = 1;
  symbols.number_count = 2;
  symbols.numbers = numbers;
  testing::CGraph graph;
  graph.output(graph.node("aten::neg", {graph.param(LTC_F32, {2})}, LTC_F32, {2}));
  run.args.scalar_count = 0;
  return run.fake.compile(run.device, graph.get(), &symbols.head);
}
void no_symbols(Fake& fake) {
  fake.api.ext = &kListed;
  run_with(fake, [](FakeRun& run) { run.args.executable = symbolic(run); });
}
void an_input_that_does_not_fit_its_symbol(Fake& fake) {
  fake.api.ext = &kListed;
  FakeRun run(fake);
  run.args.executable = symbolic(run);
  const int64_t size = 5;  // the input has 3
  auto values = sized_extension<ltc_symbol_values>(LTC_EXTENSION_SYMBOLIC, 1);
  values.symbol_count = 1;
  values.values = &size;
  run.args.ext = &values.head;
  run.submit();
}

// ---- the answer of a run

void a_missing_output(Fake& fake) {
  fake.api.execute = [](ltc_device*, const ltc_execute_args*, ltc_buffer**, ltc_event**) -> ltc_status* { return nullptr; };
  run_with(fake, [](FakeRun&) {});
}
void an_input_as_output(Fake& fake) {
  fake.api.execute = [](ltc_device*, const ltc_execute_args* args, ltc_buffer** outputs, ltc_event**) -> ltc_status* {
    outputs[0] = args->inputs[0];
    return nullptr;
  };
  run_with(fake, [](FakeRun&) {});
}
void an_event_without_event_slots(Fake& fake) {
  fake.without_events();
  run_with(fake, [](FakeRun&) {});
}
void the_same_event_twice(Fake& fake) {
  fake.api.transfer = [](ltc_device*, const ltc_transfer_args*, ltc_event** done) -> ltc_status* {
    static ltc_event* const one = fresh<ltc_event>();
    *done = one;
    return nullptr;
  };
  ltc_device* device = fake.open();
  ltc_buffer* buffer = fake.buffer(device);
  fake.upload(device, buffer);
  fake.upload(device, buffer);
}

// ---- events

bool is_over, has_failed;
ltc_status* answer(ltc_event*, uint64_t, bool* finished) {
  *finished = is_over;
  return has_failed ? Fake::error() : nullptr;
}
// A run whose event answers as is_over and has_failed say.
void wait_with(Fake& fake, void (*ask)(FakeRun&)) {
  fake.api.event_wait = answer;
  is_over = true;
  has_failed = false;
  FakeRun run(fake);
  run.submit();
  ask(run);
}
void a_wait_that_does_not_wait(Fake& fake) {
  wait_with(fake, [](FakeRun& run) {
    is_over = false;
    run.wait();
  });
}
void work_that_begins_again(Fake& fake) {
  wait_with(fake, [](FakeRun& run) {
    run.wait();
    is_over = false;
    run.wait(0);
  });
}
void an_error_that_comes_later(Fake& fake) {
  wait_with(fake, [](FakeRun& run) {
    run.wait();
    has_failed = true;
    run.wait();
  });
}
void an_error_that_is_told_once(Fake& fake) {
  wait_with(fake, [](FakeRun& run) {
    has_failed = true;
    run.wait();
    has_failed = false;
    run.wait();
  });
}
void a_later_event_that_is_over_first(Fake& fake) {
  wait_with(fake, [](FakeRun& run) {
    ltc_event* const first = run.done;
    run.done = run.fake.upload(run.device, run.input);
    run.wait();
    is_over = false;
    run.done = first;
    run.wait(0);
  });
}
Fake* nested;
void an_event_ended_during_a_wait(Fake& fake) {
  static ltc_event* waited;
  fake.api.event_wait = [](ltc_event*, uint64_t, bool* finished) -> ltc_status* {
    nested->slots->event_destroy(waited);
    *finished = true;
    return nullptr;
  };
  nested = &fake;
  FakeRun run(fake);
  run.submit();
  waited = run.done;
  run.wait();
}

void good_outputs(FakeRun& run, size_t count) {
  std::vector<uint8_t> good(count);
  run.fake.took(run.fake.slots->event_good_outputs(run.done, count, good.data()));
}
void good_outputs_without_an_error(Fake& fake) {
  wait_with(fake, [](FakeRun& run) {
    run.wait();
    good_outputs(run, 1);
  });
}
void good_outputs_of_another_count(Fake& fake) {
  wait_with(fake, [](FakeRun& run) {
    has_failed = true;
    run.wait();
    good_outputs(run, 2);
  });
}
void a_good_output_that_is_a_seven(Fake& fake) {
  fake.api.event_good_outputs = [](ltc_event*, size_t, uint8_t* good) -> ltc_status* {
    good[0] = 7;
    return nullptr;
  };
  wait_with(fake, [](FakeRun& run) {
    has_failed = true;
    run.wait();
    good_outputs(run, 1);
  });
}

void bytes_at_any_address(Fake& fake) {
  ltc_device* device = fake.open();
  alignas(64) const char bytes[65] = {};
  auto load = sized<ltc_load_args>();
  load.data = bytes + 1;
  load.size = 64;
  ltc_executable* executable = nullptr;
  fake.took(fake.slots->executable_load(device, &load, &executable));
}

}  // namespace

std::vector<Case> run_cases() {
  return {
      {"execute.input_count", no_input},
      {"execute.input_type", an_input_of_another_size},
      {"execute.input_type", an_input_that_does_not_fit_its_symbol},
      {"execute.donate", a_donation_by_a_two},
      {"execute.donated_once", a_donated_input_twice},
      {"execute.scalar_count", no_scalar},
      {"execute.scalar_bool", a_bool_of_two},
      {"execute.output_count", another_output_count},
      {"execute.symbols", no_symbols},
      {"execute.outputs_not_null", a_missing_output},
      {"execute.outputs_once", an_input_as_output},
      {"submit.no_event", an_event_without_event_slots},
      {"handle.once", the_same_event_twice},
      {"event_wait.forever", a_wait_that_does_not_wait},
      {"event_wait.stays_over", work_that_begins_again},
      {"event_wait.same_answer", an_error_that_comes_later},
      {"event_wait.same_answer", an_error_that_is_told_once},
      {"event_wait.in_order", a_later_event_that_is_over_first},
      {"event_destroy.no_wait", an_event_ended_during_a_wait},
      {"event_good_outputs.after_error", good_outputs_without_an_error},
      {"event_good_outputs.count", good_outputs_of_another_count},
      {"event_good_outputs.values", a_good_output_that_is_a_seven},
      {"executable_load.alignment", bytes_at_any_address},
  };
}

}  // namespace ltc::host::validation
