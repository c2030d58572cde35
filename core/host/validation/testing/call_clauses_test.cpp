// Clauses of every call, of the entry, and of what describes.
#include <cfenv>
#include <stdexcept>
#include <thread>

#include "core/host/validation/testing/fake.h"
#include "ltc/precision.h"

namespace ltc::host::validation {
namespace {

// ---- handles

void a_destroyed_buffer(Fake& fake) {
  ltc_device* device = fake.open();
  ltc_buffer* buffer = fake.buffer(device);
  fake.slots->buffer_destroy(buffer);
  fake.upload(device, buffer);
}
void a_handle_that_was_never_given(Fake& fake) {
  fake.open();
  fake.slots->buffer_destroy(fresh<ltc_buffer>());
}
void a_donated_buffer(Fake& fake) {
  FakeRun run(fake);
  const uint8_t donated = 1;
  run.args.donate = &donated;
  run.submit();
  fake.slots->buffer_destroy(run.input);
}
void a_call_after_plugin_close(Fake& fake) {
  fake.enter();
  fake.slots->plugin_close(fake.plugin);
  fake.took(fake.describe());
}
void another_devices_buffer(Fake& fake) {
  ltc_device *one = fake.open(), *other = fake.open();
  fake.upload(other, fake.buffer(one));
}

Fake* nested;
ltc_buffer* in_use;
void a_buffer_destroyed_while_it_is_copied(Fake& fake) {
  fake.api.transfer = [](ltc_device*, const ltc_transfer_args*, ltc_event**) -> ltc_status* {
    nested->slots->buffer_destroy(in_use);
    return nullptr;
  };
  nested = &fake;
  ltc_device* device = fake.open();
  in_use = fake.buffer(device);
  fake.upload(device, in_use);
}
void a_null_buffer(Fake& fake) {
  fake.api.buffer_create = [](ltc_device*, const ltc_buffer_args*, ltc_buffer** buffer) -> ltc_status* {
    *buffer = nullptr;
    return nullptr;
  };
  fake.buffer(fake.open());
}
void a_buffer_that_is_not_written(Fake& fake) {
  fake.api.buffer_create = [](ltc_device*, const ltc_buffer_args*, ltc_buffer**) -> ltc_status* { return nullptr; };
  fake.buffer(fake.open());
}
void the_same_buffer_twice(Fake& fake) {
  fake.api.buffer_create = [](ltc_device*, const ltc_buffer_args*, ltc_buffer** buffer) -> ltc_status* {
    static ltc_buffer* const one = fresh<ltc_buffer>();
    *buffer = one;
    return nullptr;
  };
  ltc_device* device = fake.open();
  fake.buffer(device);
  fake.buffer(device);
}

// ---- arguments

void a_short_struct(Fake& fake) {
  ltc_device* device = fake.open();
  auto args = upload_of(fake.buffer(device));
  args.struct_size = sizeof(size_t);
  ltc_event* done = nullptr;
  fake.transfer(device, args, &done);
}
void an_extension_that_is_not_listed(Fake& fake) {
  testing::CGraph graph = scaled();
  auto precision = sized_extension<ltc_precision>(LTC_EXTENSION_PRECISION, 1);
  fake.lower(fake.open(), graph.get(), &precision.head);
}
void an_extension_of_a_newer_version(Fake& fake) {
  static constexpr ltc_extension listed{sizeof(ltc_extension), LTC_EXTENSION_PRECISION, 1, nullptr};
  fake.api.ext = &listed;
  testing::CGraph graph = scaled();
  auto precision = sized_extension<ltc_precision>(LTC_EXTENSION_PRECISION, 2);
  fake.lower(fake.open(), graph.get(), &precision.head);
}
void a_missing_array(Fake& fake) {
  FakeRun run(fake);
  run.args.scalars = nullptr;
  run.submit();
}
void a_location_that_is_no_utf8(Fake& fake) {
  testing::CGraph graph = scaled();
  const ltc_graph& given = graph.get();
  const_cast<ltc_node*>(given.nodes[0])->location = {"\xff", 1};
  fake.lower(fake.open(), given);
}

// ---- answers

void an_event_that_is_not_preset(Fake& fake) {
  ltc_device* device = fake.open();
  ltc_event* done = fresh<ltc_event>();
  fake.transfer(device, upload_of(fake.buffer(device)), &done);
}
void statistics_that_are_not_preset(Fake& fake) {
  auto stats = sized<ltc_memory_stats>();
  ltc_device* device = fake.open();
  fake.took(fake.slots->memory_stats(device, &stats));
}
void finished_is_not_preset(Fake& fake) {
  FakeRun run(fake);
  run.submit();
  bool finished = true;
  fake.took(fake.slots->event_wait(run.done, 0, &finished));
}
void a_handle_with_an_error(Fake& fake) {
  fake.api.buffer_create = [](ltc_device*, const ltc_buffer_args*, ltc_buffer** buffer) {
    *buffer = nullptr;
    return Fake::error();
  };
  fake.buffer(fake.open());
}
void an_event_with_an_error(Fake& fake) {
  fake.api.transfer = [](ltc_device*, const ltc_transfer_args*, ltc_event** done) {
    *done = fresh<ltc_event>();
    return Fake::error();
  };
  ltc_device* device = fake.open();
  fake.upload(device, fake.buffer(device));
}
void an_output_with_an_error(Fake& fake) {
  fake.api.execute = [](ltc_device*, const ltc_execute_args*, ltc_buffer** outputs, ltc_event**) {
    outputs[0] = nullptr;
    return Fake::error();
  };
  FakeRun run(fake);
  run.submit();
}
void a_claim_with_an_error(Fake& fake) {
  fake.api.claims = [](ltc_device*, const ltc_claims_args*, uint32_t* cluster) {
    cluster[0] = 1;
    return Fake::error();
  };
  testing::CGraph graph = scaled();
  fake.claim(fake.open(), graph.get());
}
void statistics_with_an_error(Fake& fake) {
  fake.api.memory_stats = [](ltc_device*, ltc_memory_stats* stats) {
    stats->peak_bytes = 0;
    return Fake::error();
  };
  ltc_memory_stats stats{LTC_SIZE_TO(ltc_memory_stats, largest_free_bytes), LTC_FOREVER, LTC_FOREVER, LTC_FOREVER, LTC_FOREVER};
  ltc_device* device = fake.open();
  fake.took(fake.slots->memory_stats(device, &stats));
}
void a_write_behind_a_struct(Fake& fake) {
  fake.api.describe = [](ltc_plugin*, ltc_plugin_info* info) -> ltc_status* {
    info->device_count = 1;
    reinterpret_cast<char*>(info)[info->struct_size] = 1;
    return nullptr;
  };
  fake.enter();
  fake.took(fake.describe());
}
void a_changed_struct_size(Fake& fake) {
  fake.api.describe = [](ltc_plugin*, ltc_plugin_info* info) -> ltc_status* {
    info->device_count = 1;
    info->struct_size += 8;
    return nullptr;
  };
  fake.enter();
  fake.took(fake.describe());
}
void a_name_without_nul(Fake& fake) {
  fake.api.describe = [](ltc_plugin*, ltc_plugin_info* info) -> ltc_status* {
    info->device_count = 1;
    info->name = {"names", 4};
    return nullptr;
  };
  fake.enter();
  fake.took(fake.describe());
}
char device_name[] = "a device";
void a_name_that_changes(Fake& fake) {
  fake.api.device_open = [](ltc_plugin*, const ltc_device_args*, ltc_device_info* info, ltc_device** device) -> ltc_status* {
    info->name = {device_name, sizeof device_name - 1};
    info->dtypes = 1u << LTC_F32;
    *device = fresh<ltc_device>();
    return nullptr;
  };
  ltc_device* device = fake.open();
  device_name[0] = 'A';
  fake.slots->device_close(device);
  device_name[0] = 'a';
}
void an_exception(Fake& fake) {
  fake.api.describe = [](ltc_plugin*, ltc_plugin_info*) -> ltc_status* { throw std::runtime_error("no"); };
  fake.enter();
  try {
    fake.took(fake.describe());
  } catch (const std::runtime_error&) {
  }
}
void another_rounding(Fake& fake) {
  fake.api.device_close = [](ltc_device*) { std::fesetround(FE_UPWARD); };
  ltc_device* device = fake.open();
  fake.slots->device_close(device);
  std::fesetround(FE_TONEAREST);
}

// ---- threads

void two_calls_at_a_time(Fake& fake) {
  fake.without_events();
  fake.api.describe = [](ltc_plugin*, ltc_plugin_info* info) -> ltc_status* {
    info->device_count = 1;
    info->flags = LTC_PLUGIN_ONE_CALL_AT_A_TIME;
    return nullptr;
  };
  fake.api.device_close = [](ltc_device*) { std::thread([] { nested->took(nested->describe()); }).join(); };
  nested = &fake;
  ltc_device* device = fake.open();
  fake.took(fake.describe());
  fake.slots->device_close(device);
}
ltc_device* submitting;
bool is_inner;
void two_submits_at_a_time(Fake& fake) {
  fake.api.transfer = [](ltc_device*, const ltc_transfer_args*, ltc_event**) -> ltc_status* {
    if (!std::exchange(is_inner, true)) std::thread([] { nested->upload(submitting, in_use); }).join();
    return nullptr;
  };
  nested = &fake;
  is_inner = false;
  submitting = fake.open();
  in_use = fake.buffer(submitting);
  fake.upload(submitting, in_use);
}
bool is_lost;
void a_lost_device_that_works_again(Fake& fake) {
  fake.api.transfer = [](ltc_device*, const ltc_transfer_args*, ltc_event**) {
    return std::exchange(is_lost, false) ? Fake::error(LTC_DEVICE_LOST) : nullptr;
  };
  is_lost = true;
  ltc_device* device = fake.open();
  ltc_buffer* buffer = fake.buffer(device);
  fake.upload(device, buffer);
  fake.upload(device, buffer);
}

// ---- the entry, and what describes

void an_older_version_than_both_have(Fake& fake) {
  fake.agreed = {0, 9};
  fake.enter();
}
ltc_extension circle{sizeof(ltc_extension), 7, 1, &circle};
void a_list_that_does_not_end(Fake& fake) {
  fake.api.ext = &circle;
  fake.enter();
}
void no_reason_for_no_device(Fake& fake) {
  fake.api.describe = [](ltc_plugin*, ltc_plugin_info*) -> ltc_status* { return nullptr; };
  fake.enter();
  fake.took(fake.describe());
}
void an_unknown_flag_of_a_plugin(Fake& fake) {
  fake.api.describe = [](ltc_plugin*, ltc_plugin_info* info) -> ltc_status* {
    info->device_count = 1;
    info->flags = 64;
    return nullptr;
  };
  fake.enter();
  fake.took(fake.describe());
}
void an_option_without_name(Fake& fake) {
  fake.api.describe = [](ltc_plugin*, ltc_plugin_info* info) -> ltc_status* {
    static const auto option = sized<ltc_option_info>();
    static const ltc_option_info* const options[] = {&option};
    info->device_count = 1;
    info->option_count = 1;
    info->options = options;
    return nullptr;
  };
  fake.enter();
  fake.took(fake.describe());
}
void an_ordinal_beyond_the_devices(Fake& fake) {
  fake.enter();
  fake.took(fake.describe());
  auto args = sized<ltc_device_args>();
  auto info = sized<ltc_device_info>();
  args.ordinal = 2;
  ltc_device* device = nullptr;
  fake.took(fake.slots->device_open(fake.plugin, &args, &info, &device));
}
void a_rank_beyond_its_group(Fake& fake) {
  ltc_device* device = fake.open();
  ltc_collectives collectives{};
  collectives.group_create = [](ltc_device*, const ltc_group_args*, ltc_group** group) -> ltc_status* {
    *group = fresh<ltc_group>();
    return nullptr;
  };
  collectives.group_abort = collectives.group_destroy = [](ltc_group*) {};
  fake.layer.install(collectives);
  const auto store = sized<ltc_store>();
  auto args = sized<ltc_group_args>();
  args.rank = args.size = 2;
  args.store = &store;
  ltc_group* group = nullptr;
  fake.took(collectives.group_create(device, &args, &group));
  collectives.group_destroy(group);
}
void no_dtype(Fake& fake) {
  fake.api.device_open = [](ltc_plugin*, const ltc_device_args*, ltc_device_info*, ltc_device** device) -> ltc_status* {
    *device = fresh<ltc_device>();
    return nullptr;
  };
  fake.open();
}
void an_unknown_flag_of_a_device(Fake& fake) {
  fake.api.device_open = [](ltc_plugin*, const ltc_device_args*, ltc_device_info* info, ltc_device** device) -> ltc_status* {
    info->dtypes = 1u << LTC_F32;
    info->flags = 64;
    *device = fresh<ltc_device>();
    return nullptr;
  };
  fake.open();
}
void a_device_closed_before_its_buffer(Fake& fake) {
  ltc_device* device = fake.open();
  fake.buffer(device);
  fake.slots->device_close(device);
}
void a_plugin_closed_before_its_device(Fake& fake) {
  fake.open();
  fake.slots->plugin_close(fake.plugin);
}

}  // namespace

std::vector<Case> call_cases() {
  return {
      {"handle.alive", a_destroyed_buffer},
      {"handle.alive", a_handle_that_was_never_given},
      {"handle.alive", a_donated_buffer},
      {"handle.alive", a_call_after_plugin_close},
      {"handle.same_device", another_devices_buffer},
      {"handle.destroy_alone", a_buffer_destroyed_while_it_is_copied},
      {"handle.not_null", a_null_buffer},
      {"handle.not_null", a_buffer_that_is_not_written},
      {"handle.once", the_same_buffer_twice},
      {"args.struct_size", a_short_struct},
      {"args.extensions", an_extension_that_is_not_listed},
      {"args.extensions", an_extension_of_a_newer_version},
      {"args.not_null", a_missing_array},
      {"args.string", a_location_that_is_no_utf8},
      {"out.preset", an_event_that_is_not_preset},
      {"out.preset", statistics_that_are_not_preset},
      {"out.preset", finished_is_not_preset},
      {"out.unchanged", a_handle_with_an_error},
      {"out.unchanged", an_event_with_an_error},
      {"out.unchanged", an_output_with_an_error},
      {"out.unchanged", a_claim_with_an_error},
      {"out.unchanged", statistics_with_an_error},
      {"out.within_size", a_write_behind_a_struct},
      {"out.within_size", a_changed_struct_size},
      {"out.string", a_name_without_nul},
      {"out.string_lives", a_name_that_changes},
      {"slot.no_exception", an_exception},
      {"thread.float_control", another_rounding},
      {"plugin.one_call_at_a_time", two_calls_at_a_time},
      {"device.one_submit_at_a_time", two_submits_at_a_time},
      {"device.lost_is_sticky", a_lost_device_that_works_again},
      {"entry.agreed", an_older_version_than_both_have},
      {"entry.extensions", a_list_that_does_not_end},
      {"describe.no_device", no_reason_for_no_device},
      {"describe.flags", an_unknown_flag_of_a_plugin},
      {"describe.options", an_option_without_name},
      {"device_open.ordinal", an_ordinal_beyond_the_devices},
      {"group_create.rank", a_rank_beyond_its_group},
      {"device_open.dtypes", no_dtype},
      {"device_open.flags", an_unknown_flag_of_a_device},
      {"device_close.objects_ended", a_device_closed_before_its_buffer},
      {"plugin_close.devices_ended", a_plugin_closed_before_its_device},
  };
}

}  // namespace ltc::host::validation
