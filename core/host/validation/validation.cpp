#include "core/host/validation/validation.h"

#include "core/base/env.h"
#include "core/host/validation/call.h"
#include "core/host/validation/slots.h"
#include "ltc/entry.h"

namespace ltc::host::validation {
namespace {

constexpr size_t kMostExtensions = 256;

void read_extensions(Call& call, const ltc_extension* first) {
  auto& kinds = call.instance().extensions;
  for (const ltc_extension* one = first; one; one = one->next) {
    const bool is_good =
        one->struct_size >= LTC_SIZE_TO(ltc_extension, next) && one->version >= 1 && kinds.size() < kMostExtensions;
    if (!call.require(is_good, "entry.extensions", kinds.size() < kMostExtensions ? "a head" : "it does not end")) return;
    kinds.emplace_back(LTC_EXTENSION_KIND(one), one->version);
  }
}

}  // namespace

Layer Layer::of_environment(const std::string& plugin, const ltc_host_api* host) {
  return env::get(env::kValidate) == "0" ? Layer(host, nullptr) : checking(plugin, host);
}

Layer Layer::checking(const std::string& plugin, const ltc_host_api* host) {
  auto* instance = new Instance(plugin, host);
  Registry::instance().add(instance);
  set_host_functions(*instance);
  return {host, instance};
}

const ltc_host_api* Layer::host() const { return instance_ ? &instance_->host_table : host_; }

void Layer::install(ltc_entry_args& args, ltc_version oldest, ltc_version newest) const {
  if (!instance_ || !args.api) return;
  Call call("ltc_plugin_entry");
  const Use<Instance> instance = call.use<Instance>(instance_);
  const ltc_version best = ltc_version_older(args.newest, newest) ? args.newest : newest;
  const bool is_newest = args.agreed.major == best.major && args.agreed.minor == best.minor;
  call.require(is_newest && !ltc_version_older(best, oldest), "entry.agreed", args.agreed.major, ".", args.agreed.minor,
               " instead of ", best.major, ".", best.minor);
  ltc_plugin_api& api = instance->plugin_api;
  const size_t size_bytes = std::min(args.api->struct_size, sizeof api);
  std::memcpy(&api, args.api, size_bytes - size_bytes % sizeof(void*));
  read_extensions(call, api.ext);
  instance->plugin = args.plugin;
  instance->table.struct_size = api.struct_size < sizeof api ? api.struct_size : LTC_SIZE_TO(ltc_plugin_api, event_good_outputs);
  instance->table.ext = api.ext;
  set_memory_slots(*instance_);
  set_program_slots(*instance_);
  set_run_slots(*instance_);
  args.api = &instance->table;
  args.plugin = reinterpret_cast<ltc_plugin*>(instance_);
}

void Layer::install(ltc_collectives& collectives) const {
  if (!instance_ || !collectives.group_create) return;
  instance_->plugin_collectives = collectives;
  set_group_functions(*instance_);
  collectives = instance_->collectives;
}

}  // namespace ltc::host::validation
