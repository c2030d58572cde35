// Clauses of statuses, sinks, and what else a plugin calls.
#include <thread>

#include "core/host/validation/testing/fake.h"

namespace ltc::host::validation {
namespace {

// ---- statuses

void a_status_that_is_given_twice(Fake& fake) {
  fake.api.describe = [](ltc_plugin*, ltc_plugin_info*) {
    ltc_status* const status = Fake::error();
    Fake::offered->status_destroy(status);
    return status;
  };
  fake.enter();
  fake.took(fake.describe());
}
void a_status_destroyed_twice(Fake& fake) {
  fake.enter();
  ltc_status* const status = Fake::error();
  Fake::offered->status_destroy(status);
  Fake::offered->status_destroy(status);
}
void a_status_that_is_left(Fake& fake) {
  fake.enter();
  Fake::error();
  fake.slots->plugin_close(fake.plugin);
}
void a_node_beyond_the_graph(Fake& fake) {
  fake.api.lower = [](ltc_device*, const ltc_lower_args* args, ltc_program**) {
    return Fake::error(LTC_UNSUPPORTED, static_cast<uint32_t>(args->graph->node_count));
  };
  testing::CGraph graph = scaled();
  fake.lower(fake.open(), graph.get());
}
void a_node_where_there_is_no_graph(Fake& fake) {
  fake.api.buffer_create = [](ltc_device*, const ltc_buffer_args*, ltc_buffer**) { return Fake::error(LTC_INTERNAL, 0); };
  fake.buffer(fake.open());
}
void a_code_that_is_not_listed(Fake& fake) {
  fake.api.buffer_create = [](ltc_device*, const ltc_buffer_args*, ltc_buffer**) { return Fake::error(LTC_NOT_FOUND); };
  fake.buffer(fake.open());
}
void an_unknown_code(Fake& fake) {
  fake.enter();
  Fake::offered->status_destroy(Fake::error(77));
}
void a_message_that_is_no_utf8(Fake& fake) {
  fake.enter();
  Fake::offered->status_destroy(Fake::offered->status_create(Fake::offered->host, LTC_INTERNAL, LTC_NONE, "\xff", 1));
}

// ---- sinks

bool take(void*, const void*, size_t) { return true; }
bool refuse(void*, const void*, size_t) { return false; }
ltc_sink kept;

void write_text(Fake& fake, bool (*write)(void*, const void*, size_t)) {
  testing::CGraph graph = scaled();
  ltc_program* program = fake.lower(fake.open(), graph.get());
  const ltc_sink sink{nullptr, write};
  fake.took(fake.slots->program_text(program, &sink));
}
void a_write_after_the_call(Fake& fake) {
  fake.api.program_text = [](const ltc_program*, const ltc_sink* sink) -> ltc_status* {
    kept = *sink;
    return nullptr;
  };
  write_text(fake, take);
  kept.write(kept.context, "late", 4);
}
void a_write_by_another_thread(Fake& fake) {
  fake.api.program_text = [](const ltc_program*, const ltc_sink* sink) -> ltc_status* {
    std::thread([&] { sink->write(sink->context, "text", 4); }).join();
    return nullptr;
  };
  write_text(fake, take);
}
void a_write_after_a_refusal(Fake& fake) {
  fake.api.program_text = [](const ltc_program*, const ltc_sink* sink) -> ltc_status* {
    sink->write(sink->context, "text", 4);
    sink->write(sink->context, "text", 4);
    return nullptr;
  };
  write_text(fake, refuse);
}
void an_error_after_a_refusal(Fake& fake) {
  fake.api.program_text = [](const ltc_program*, const ltc_sink* sink) {
    return sink->write(sink->context, "text", 4) ? nullptr : Fake::error();
  };
  write_text(fake, refuse);
}

// ---- functions of the host

void another_host(Fake& fake) {
  fake.enter();
  Fake::offered->log(&fake, LTC_LOG_DEBUG, "text", 4);
}
void a_log_after_plugin_close(Fake& fake) {
  fake.enter();
  fake.slots->plugin_close(fake.plugin);
  Fake::offered->is_awaited(Fake::offered->host);
}

Fake* nested;
void a_call_back_into_the_plugin(Fake& fake) {
  nested = &fake;
  fake.enter();
  const ltc_string key{"key", 3};
  const ltc_sink sink{nullptr, take};
  // A host whose cache calls the plugin.
  static ltc_host_api host;
  host = *fake.host.table();
  host.cache_find = [](void*, const ltc_string*, const ltc_sink*) { return nested->took(nested->describe()); };
  fake.layer = Layer::checking("fake", &host);
  Fake::offered = fake.layer.host();
  fake.enter();
  Fake::offered->cache_find(Fake::offered->host, &key, &sink);
}
void an_unknown_level(Fake& fake) {
  fake.enter();
  Fake::offered->log_enabled(Fake::offered->host, 9);
}
void a_log_that_is_no_utf8(Fake& fake) {
  fake.enter();
  Fake::offered->log(Fake::offered->host, LTC_LOG_DEBUG, "\xff", 1);
}
void a_key_without_bytes(Fake& fake) {
  fake.enter();
  const ltc_string key{nullptr, 3}, empty{"", 0};
  Fake::offered->cache_insert(Fake::offered->host, &key, &empty, &empty);
}
void a_sink_without_write(Fake& fake) {
  fake.enter();
  const ltc_string key{"key", 3};
  const ltc_sink sink{nullptr, nullptr};
  Fake::offered->cache_find(Fake::offered->host, &key, &sink);
}

}  // namespace

std::vector<Case> host_cases() {
  return {
      {"status.owned", a_status_that_is_given_twice},
      {"status.owned", a_status_destroyed_twice},
      {"status.ended", a_status_that_is_left},
      {"status.node", a_node_beyond_the_graph},
      {"status.node", a_node_where_there_is_no_graph},
      {"status.code", a_code_that_is_not_listed},
      {"status_create.code", an_unknown_code},
      {"status_create.message", a_message_that_is_no_utf8},
      {"sink.during_call", a_write_after_the_call},
      {"sink.during_call", a_write_by_another_thread},
      {"sink.gives_up", a_write_after_a_refusal},
      {"sink.gives_up", an_error_after_a_refusal},
      {"host_api.host", another_host},
      {"host_api.not_after_close", a_log_after_plugin_close},
      {"host_api.no_call_back", a_call_back_into_the_plugin},
      {"log.level", an_unknown_level},
      {"log.message", a_log_that_is_no_utf8},
      {"cache.strings", a_key_without_bytes},
      {"cache.sink", a_sink_without_write},
  };
}

}  // namespace ltc::host::validation
