// A plugin instance: the ladder from a file to a checked table. plugin_device.cpp has its devices.
#include "core/host/plugin.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "core/base/float_control.h"
#include "core/base/log.h"
#include "core/base/utf8.h"
#include "core/host/call.h"
#include "core/host/host_api.h"
#include "core/host/library.h"
#include "core/host/option_list.h"
#include "core/host/sized.h"
#include "core/host/validation/validation.h"
#include "core/host/watchdog.h"

namespace ltc::host {
namespace {

constexpr const char* kEntry = "ltc_plugin_entry";
constexpr ltc_version kOldest{LTC_ABI_MAJOR, 0};
constexpr ltc_version kNewest{LTC_ABI_MAJOR, LTC_ABI_MINOR};

#if defined(__SANITIZE_ADDRESS__)
constexpr uint32_t kOwnSanitizers = LTC_SANITIZER_ADDRESS;
#elif defined(__SANITIZE_THREAD__)
constexpr uint32_t kOwnSanitizers = LTC_SANITIZER_THREAD;
#else
constexpr uint32_t kOwnSanitizers = 0;
#endif

bool older(ltc_version a, ltc_version b) { return a.major != b.major ? a.major < b.major : a.minor < b.minor; }
std::string text(ltc_version v) { return cat(v.major, ".", v.minor); }
std::string range(ltc_version oldest, ltc_version newest) { return text(oldest) + " to " + text(newest); }

std::string sanitizer_names(uint32_t bits) {
  std::string names;
  if (bits & LTC_SANITIZER_ADDRESS) names += " address";
  if (bits & LTC_SANITIZER_THREAD) names += " thread";
  if (bits & LTC_SANITIZER_MEMORY) names += " memory";
  return names;
}

std::string refusal(const ltc_entry_args& args) {
  const std::string reason =
      args.reason ? cat("; it says: ", std::string_view(args.reason, ::strnlen(args.reason, kLongestText))) : "";
  return cat("the plugin speaks ABI ", range(args.oldest, args.newest), ", this host ", range(kOldest, kNewest), reason);
}

// Whether no struct of the kind can lie at the address: it is misaligned, or a small number.
template <typename Struct>
bool is_stray(const Struct* address) {
  const auto number = reinterpret_cast<uintptr_t>(address);
  return number % alignof(Struct) != 0 || number < 4096;
}

// The options that a plugin lists in its description.
std::vector<PluginInfo::Option> copied_options(const std::string& plugin, const ltc_plugin_info& info) {
  constexpr size_t kMost = 1000;
  if (info.option_count > kMost || (info.option_count > 0 && is_stray(info.options))) {
    throw BrokenContract(plugin, cat("describe says that there are ", info.option_count, " options",
                                     info.option_count > kMost ? "" : " and gives no list of them"));
  }
  std::vector<PluginInfo::Option> options;
  for (size_t i = 0; i < info.option_count; ++i) {
    const ltc_option_info* const option = info.options[i];
    if (is_stray(option)) throw BrokenContract(plugin, cat("describe gives no option ", i, " of ", info.option_count));
    if (!LTC_HAS(option, ltc_option_info, about)) {
      throw BrokenContract(plugin, cat("describe gives option ", i, " with struct_size ", option->struct_size));
    }
    options.push_back({copied(option->name), copied(option->default_value), copied(option->about)});
  }
  return options;
}

struct Slot {
  const char* name;
  bool set;
  bool inside;  // the table's struct_size
};

const Slot* first_missing(const std::vector<Slot>& slots) {
  const auto found = std::find_if(slots.begin(), slots.end(), [](const Slot& s) { return !s.set; });
  return found == slots.end() ? nullptr : &*found;
}

bool any_set(const std::vector<Slot>& slots) {
  return std::any_of(slots.begin(), slots.end(), [](const Slot& s) { return s.set; });
}

}  // namespace

std::string plugin_name(const std::string& path) {
  const std::string stem = std::filesystem::path(path).stem().string();
  constexpr std::string_view kPrefix = "libltc_";
  return valid_utf8(stem.starts_with(kPrefix) ? stem.substr(kPrefix.size()) : stem);
}

Plugin::Plugin(const std::string& name, std::string path)
    : host_(HostApi::enter(name)), name_(host_.plugin_name()), path_(std::move(path)) {
  watch_calls();
}

Plugin::~Plugin() {
  if (api_.plugin_close) tell("plugin_close", [&] { api_.plugin_close(instance_); });
  host_.leave();
}

std::shared_ptr<Plugin> Plugin::load(const std::string& path, const Options& options) {
  const KeepFloatControl keep;  // static constructors run, those of the libraries that it brings along too
  std::shared_ptr<Plugin> plugin(new Plugin(plugin_name(path), path));
  Library library = plugin->open_library();
  auto* entry = reinterpret_cast<ltc_plugin_entry_fn*>(library.find(kEntry));
  if (!entry) plugin->refuse(Code::kNotFound, cat("not a plugin: it exports no ", kEntry));
  library.keep();
  try {
    plugin->negotiate(entry, options);
  } catch (const PluginError& error) {  // names the plugin and not yet the file
    plugin->refuse(error.code(), std::string(error.what()).substr(cat("[", plugin->name_, "] ").size()));
  }
  log::info("[", plugin->name_, "] ", path, ": ABI ", text(plugin->agreed_));
  return plugin;
}

std::shared_ptr<Plugin> Plugin::enter(const std::string& name, ltc_plugin_entry_fn* entry, const Options& options) {
  std::shared_ptr<Plugin> plugin(new Plugin(name, ""));
  plugin->negotiate(entry, options);
  return plugin;
}

Library Plugin::open_library() const {
  try {
    const WatchedCall watched(name_, "the loading of its library");  // its constructors run
    return Library::open(path_);
  } catch (const Error& e) {
    refuse(e.code(), e.what());
  }
}

void Plugin::refuse(Code code, const std::string& why) const {
  fail(code, "[", name_, "] ", path_, path_.empty() ? "" : ": ", why);
}

void Plugin::negotiate(ltc_plugin_entry_fn* entry, const Options& options) {
  const OptionList list(options);
  auto args = sized<ltc_entry_args>();
  args.option_count = list.size();
  args.options = list.data();
  const validation::Layer layer = validation::Layer::of_environment(name_, host_.table());
  args.host = layer.host();
  args.oldest = kOldest;
  args.newest = kNewest;
  const KeepFloatControl keep;
  const bool accepted = guarded(name_, kEntry, [&] { return entry(&args); });
  if (!accepted) {
    const bool speaks = args.oldest.major == kNewest.major && !older(kNewest, args.oldest) && !older(args.newest, kOldest);
    if (speaks && args.reason) refuse(Code::kInvalidArgument, valid_utf8({args.reason, ::strnlen(args.reason, kLongestText)}));
    if (speaks) refuse(Code::kUnsupported, "the entry refused and gave no reason");
    refuse(Code::kUnsupported, refusal(args));
  }
  if (args.agreed.major == 0 && args.agreed.minor == 0) {
    refuse(Code::kUnsupported,
           cat("the entry accepted and agreed on no version; this host speaks ABI ", range(kOldest, kNewest)));
  }
  if (older(args.agreed, kOldest) || older(kNewest, args.agreed)) {
    refuse(Code::kUnsupported,
           cat("the plugin agreed on ABI ", text(args.agreed), ", outside this host's range; ", refusal(args)));
  }
  agreed_ = args.agreed;
  copy_table(args.api);
  instance_ = args.plugin;  // which the destructor closes if what follows refuses
  read_extensions();
  layer.install(args, kOldest, kNewest);  // behind the checks of what it reads
  layer.install(collectives_);
  copy_table(args.api);
  instance_ = args.plugin;
  check_table();
  check_describe();
}

// The plugin's table may be shorter or longer than ours: what it does not have stays null.
void Plugin::copy_table(const ltc_plugin_api* table) {
  constexpr size_t kLargest = 64 << 10;  // no version has a table that comes near it
  if (!table) refuse(Code::kInternal, "the entry accepted and gave no table");
  if (is_stray(table)) refuse(Code::kInternal, "the entry accepted and gave a table at an address where none can be");
  if (table->struct_size > kLargest) {
    refuse(Code::kInternal, cat("ltc_plugin_api::struct_size is ", table->struct_size, ", more than any table has"));
  }
  const size_t size_bytes = std::min(table->struct_size, sizeof(api_));
  std::memcpy(&api_, table, size_bytes - size_bytes % sizeof(void*));
}

void Plugin::read_extensions() {
  constexpr size_t kMost = 256;
  for (const ltc_extension* ext = api_.ext; ext; ext = ext->next) {
    if (extensions_.size() == kMost) refuse(Code::kUnsupported, "its list of extensions does not end");
    if (is_stray(ext)) refuse(Code::kInternal, "its list of extensions goes on at an address where none can be");
    if (ext->struct_size < sizeof *ext) {
      refuse(Code::kInternal, cat("its list of extensions has one with struct_size ", ext->struct_size));
    }
    const uint32_t kind = LTC_EXTENSION_KIND(ext);
    const bool is_known = HostApi::knows(kind) && ext->version >= 1;  // version 1 of each is the only one so far
    if (ext->kind & LTC_EXTENSION_REQUIRED && !is_known) {
      refuse(Code::kUnsupported, cat("it requires the extension ", kind, ", which this host does not know"));
    }
    extensions_.push_back(is_known ? kind : 0);
    if (is_known && kind == LTC_EXTENSION_COLLECTIVE) read_collectives(ext);
  }
}

void Plugin::read_collectives(const ltc_extension* ext) {
  if (ext->struct_size < sizeof(ltc_collectives)) {
    refuse(Code::kInternal, cat("it lists collectives with struct_size ", ext->struct_size, ", too small for their functions"));
  }
  std::memcpy(&collectives_, ext, sizeof collectives_);
  if (!collectives_.group_create || !collectives_.group_abort || !collectives_.group_destroy) {
    refuse(Code::kInternal, "it lists collectives and lacks one of their functions");
  }
}

void Plugin::check_table() const {
#define SLOT(name) \
  Slot { #name, api_.name != nullptr, LTC_HAS(&api_, ltc_plugin_api, name) }
  const std::vector<Slot> memory = {SLOT(describe),      SLOT(device_open),    SLOT(device_close),
                                    SLOT(buffer_create), SLOT(buffer_destroy), SLOT(transfer)};
  const std::vector<Slot> computing = {SLOT(claims), SLOT(lower), SLOT(program_destroy), SLOT(compile), SLOT(executable_destroy),
                                       SLOT(execute)};
  const std::vector<Slot> events = {SLOT(event_wait), SLOT(event_destroy)};
#undef SLOT
  if (const Slot* slot = first_missing(memory)) {
    refuse(Code::kInternal, cat("the table lacks ", slot->name, ", which every plugin must have",
                                slot->inside ? "" : cat(": its struct_size is ", api_.struct_size)));
  }
  for (const auto* group : {&computing, &events}) {
    const Slot* slot = first_missing(*group);
    if (slot && any_set(*group)) {
      refuse(Code::kInternal,
             cat("the table lacks ", slot->name, ", which goes with ", group->front().name, ": all of this group or none"));
    }
  }
}

void Plugin::check_describe() {
  const PluginInfo info = describe();
  const uint32_t foreign = info.sanitizers & ~kOwnSanitizers;
  if (foreign) {
    refuse(Code::kUnsupported, cat("the plugin was built with the sanitizer", sanitizer_names(foreign), ", this host was not"));
  }
  constexpr uint32_t kKnown = LTC_PLUGIN_ONE_CALL_AT_A_TIME;
  if (info.flags & ~kKnown) {
    refuse(Code::kUnsupported, cat("ltc_plugin_info::flags is ", info.flags, "; this host knows ", kKnown));
  }
  one_call_at_a_time_ = (info.flags & LTC_PLUGIN_ONE_CALL_AT_A_TIME) != 0;
  if (one_call_at_a_time_ && is_asynchronous()) {
    refuse(Code::kInternal, "LTC_PLUGIN_ONE_CALL_AT_A_TIME does not go with event slots: a wait would keep all other calls out");
  }
}

bool Plugin::understands(uint32_t extension) const {
  return std::find(extensions_.begin(), extensions_.end(), extension) != extensions_.end();
}

PluginInfo Plugin::describe() const {
  auto info = sized<ltc_plugin_info>();
  ask("describe", [&] { return api_.describe(instance_, &info); });
  if (info.device_count > kMostDevices) {
    throw PluginError(Code::kUnsupported, name_, "describe",
                      cat("the plugin has ", info.device_count, " devices; PyTorch numbers at most ", kMostDevices));
  }
  PluginInfo result{copied(info.name), copied(info.version), copied(info.build_id), copied(info.why_no_device), info.device_count,
                    info.sanitizers,   info.flags,           copied(info.licence)};
  result.options = copied_options(name_, info);
  return result;
}

std::unique_ptr<PluginDevice> Plugin::open_device(uint32_t ordinal) {
  const PluginInfo plugin_info = describe();
  if (ordinal >= plugin_info.device_count) {
    fail(Code::kInvalidArgument, "[", name_, "] no device ", ordinal, ": the plugin has ", plugin_info.device_count,
         plugin_info.why_no_device.empty() ? "" : ": ", plugin_info.why_no_device);
  }
  return std::unique_ptr<PluginDevice>(new PluginDevice(shared_from_this(), ordinal));
}

Waiting::Waiting(const PluginDevice& device) : plugin_(device.plugin().shared_from_this()) { plugin_->host_.begin_wait(); }
Waiting::~Waiting() { plugin_->host_.end_wait(); }

}  // namespace ltc::host
