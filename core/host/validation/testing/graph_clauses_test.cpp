// Clauses of types, transfers and graphs.
#include "core/host/validation/testing/fake.h"
#include "ltc/symbolic.h"

namespace ltc::host::validation {
namespace {

// ---- buffers and transfers

void an_unknown_dtype(Fake& fake) { fake.buffer(fake.open(), {3}, 100); }
void a_negative_size(Fake& fake) { fake.buffer(fake.open(), {-1}); }
void a_dtype_that_is_not_listed(Fake& fake) { fake.buffer(fake.open(), {3}, LTC_F16); }

// An upload that `change` makes wrong.
void transfer_with(Fake& fake, void (*change)(ltc_transfer_args&, ltc_buffer* other)) {
  ltc_device* device = fake.open();
  auto args = upload_of(fake.buffer(device));
  change(args, fake.buffer(device));
  ltc_event* done = nullptr;
  fake.transfer(device, args, &done);
}
void an_unknown_flag(Fake& fake) {
  transfer_with(fake, [](ltc_transfer_args& args, ltc_buffer*) { args.flags = 1; });
}
void an_unknown_direction(Fake& fake) {
  transfer_with(fake, [](ltc_transfer_args& args, ltc_buffer*) { args.direction = 4, args.from = nullptr; });
}
void more_than_the_buffer(Fake& fake) {
  transfer_with(fake, [](ltc_transfer_args& args, ltc_buffer*) { args.offset_bytes = 4; });
}
void an_offset_that_overflows(Fake& fake) {
  transfer_with(fake, [](ltc_transfer_args& args, ltc_buffer*) { args.offset_bytes = UINT64_MAX - 3; });
}
void no_memory_to_read(Fake& fake) {
  transfer_with(fake, [](ltc_transfer_args& args, ltc_buffer*) { args.from = nullptr; });
}
void memory_on_both_sides(Fake& fake) {
  transfer_with(fake, [](ltc_transfer_args& args, ltc_buffer*) { args.to = const_cast<void*>(args.from); });
}
void a_source_of_an_upload(Fake& fake) {
  transfer_with(fake, [](ltc_transfer_args& args, ltc_buffer* other) { args.source = other; });
}
void a_copy_onto_itself(Fake& fake) {
  transfer_with(fake, [](ltc_transfer_args& args, ltc_buffer*) {
    args.direction = LTC_ON_DEVICE, args.from = nullptr, args.source = args.buffer;
  });
}
void a_peer_that_is_none(Fake& fake) {
  fake.api.device_open = [](ltc_plugin*, const ltc_device_args*, ltc_device_info* info, ltc_device** device) -> ltc_status* {
    info->dtypes = 1u << LTC_F32;
    *device = fresh<ltc_device>();
    return nullptr;
  };
  ltc_device *one = fake.open(), *other = fake.open();
  auto args = upload_of(fake.buffer(one));
  args.direction = LTC_ON_DEVICE;
  args.from = nullptr;
  args.source = fake.buffer(other);
  ltc_event* done = nullptr;
  fake.transfer(one, args, &done);
}

// ---- graphs

// The graph relu(x * s), which `change` makes wrong.
void lower_with(Fake& fake, void (*change)(const ltc_graph&)) {
  testing::CGraph graph = scaled();
  const ltc_graph& given = graph.get();
  change(given);
  fake.lower(fake.open(), given);
}
ltc_node& node(const ltc_graph& graph, size_t i) { return *const_cast<ltc_node*>(graph.nodes[i]); }
ltc_param& param(const ltc_graph& graph, size_t i) { return *const_cast<ltc_param*>(graph.params[i]); }
ltc_type& type(const ltc_graph& graph, size_t i) { return *const_cast<ltc_type*>(graph.types[i]); }

void sizes_that_are_null(Fake& fake) {
  lower_with(fake, [](const ltc_graph& graph) { type(graph, 1).sizes = nullptr; });
}
void a_value_made_twice(Fake& fake) {
  lower_with(fake, [](const ltc_graph& graph) { node(graph, 1).outputs = node(graph, 0).outputs; });
}
void a_value_beyond_the_values(Fake& fake) {
  lower_with(fake, [](const ltc_graph& graph) { param(graph, 0).value = 100; });
}
void a_node_before_its_operand(Fake& fake) {
  lower_with(fake, [](const ltc_graph& graph) {
    node(graph, 0).inputs = node(graph, 1).outputs;
    node(graph, 0).input_count = 1;
  });
}
void a_scalar_with_sizes(Fake& fake) {
  lower_with(fake, [](const ltc_graph& graph) { param(graph, 0).flags = LTC_PARAM_SCALAR; });
}
void an_unknown_param_flag(Fake& fake) {
  lower_with(fake, [](const ltc_graph& graph) { param(graph, 0).flags = 2; });
}
void an_alias_of_another_size(Fake& fake) {
  lower_with(fake, [](const ltc_graph& graph) { type(graph, 0).rank = 0; });
}
void an_alias_beyond_the_outputs(Fake& fake) {
  lower_with(fake, [](const ltc_graph& graph) { param(graph, 0).alias_output = 1; });
}
void a_node_without_name(Fake& fake) {
  lower_with(fake, [](const ltc_graph& graph) { node(graph, 0).name = {"", 0}; });
}
void attribute(Fake& fake, const ltc_attr& attr) {
  testing::CGraph graph = scaled();
  const ltc_graph& given = graph.get();
  const ltc_attr* const attrs[] = {&attr};
  node(given, 1).attr_count = 1;
  node(given, 1).attrs = attrs;
  fake.lower(fake.open(), given);
}
void an_attribute_of_an_unknown_kind(Fake& fake) {
  auto attr = sized<ltc_attr>();
  attr.name = {"alpha", 5};
  attr.kind = 77;
  attribute(fake, attr);
}
void two_values_of_a_single_one(Fake& fake) {
  const int64_t values[] = {1, 2};
  auto attr = sized<ltc_attr>();
  attr.name = {"alpha", 5};
  attr.kind = LTC_ATTR_INT;
  attr.count = 2;
  attr.value.ints = values;
  attribute(fake, attr);
}
void an_output_that_is_a_param(Fake& fake) {
  lower_with(fake, [](const ltc_graph& graph) { const_cast<uint32_t*>(graph.outputs)[0] = 0; });
}

void a_symbol_that_is_not_there(Fake& fake) {
  static constexpr ltc_extension listed{sizeof(ltc_extension), LTC_EXTENSION_SYMBOLIC, 1, nullptr};
  fake.api.ext = &listed;
  const ltc_symbolic_number number{0, LTC_NONE, 0, 1, 1, 0};
  auto symbols = sized_extension<ltc_symbolic_sizes>(LTC_EXTENSION_SYMBOLIC, 1);
  symbols.symbol_count = symbols.number_count = 1;
  symbols.numbers = &number;
  testing::CGraph graph = scaled();
  fake.lower(fake.open(), graph.get(), &symbols.head);
}

void other_claims_the_second_time(Fake& fake) {
  fake.api.claims = [](ltc_device*, const ltc_claims_args*, uint32_t* cluster) -> ltc_status* {
    static uint32_t asked = 0;
    cluster[0] = ++asked;
    return nullptr;
  };
  testing::CGraph graph = scaled();
  fake.claim(fake.open(), graph.get());
}

}  // namespace

std::vector<Case> graph_cases() {
  return {
      {"type.dtype", an_unknown_dtype},
      {"type.sizes", a_negative_size},
      {"type.sizes", sizes_that_are_null},
      {"buffer_create.dtype", a_dtype_that_is_not_listed},
      {"transfer.direction", an_unknown_direction},
      {"transfer.direction", an_unknown_flag},
      {"transfer.range", more_than_the_buffer},
      {"transfer.range", an_offset_that_overflows},
      {"transfer.memory", no_memory_to_read},
      {"transfer.memory", memory_on_both_sides},
      {"transfer.source", a_source_of_an_upload},
      {"transfer.source", a_copy_onto_itself},
      {"transfer.peer", a_peer_that_is_none},
      {"graph.values", a_value_made_twice},
      {"graph.values", a_value_beyond_the_values},
      {"graph.order", a_node_before_its_operand},
      {"graph.scalars", a_scalar_with_sizes},
      {"graph.param_flags", an_unknown_param_flag},
      {"graph.aliases", an_alias_of_another_size},
      {"graph.aliases", an_alias_beyond_the_outputs},
      {"graph.node_name", a_node_without_name},
      {"graph.attrs", an_attribute_of_an_unknown_kind},
      {"graph.attrs", two_values_of_a_single_one},
      {"graph.outputs", an_output_that_is_a_param},
      {"graph.symbols", a_symbol_that_is_not_there},
      {"claims.deterministic", other_claims_the_second_time},
  };
}

}  // namespace ltc::host::validation
