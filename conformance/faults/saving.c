/* The minimal plugin with executables that are saved: for checks of the suite. Executables are kept in a list, and the bytes name
 * a place in it, so no other process loads them: that is the fault of it without SAVING_FAULT, which chooses a second. */
#include <pthread.h>
#include <stdio.h>

#include "ltc/entry.h"

#define ltc_plugin_entry minimal_entry
#include "plugin.c"
#undef ltc_plugin_entry

#ifndef SAVING_FAULT
#define SAVING_FAULT NO_FAULT
#endif
enum {
  NO_FAULT,
  ANY_LENGTH,       /* does not see that bytes are missing */
  NO_CHECKSUM,      /* does not see that bytes are damaged */
  OWN_CODE,         /* refuses damaged bytes with INVALID_ARGUMENT */
  TRUSTS_LENGTHS,   /* reads as many bytes as the bytes say */
  SAME_EXECUTABLE,  /* a second load gives the executable of the first */
  CLEARS_ON_ERROR,  /* a refusal writes the out parameter */
  LEAKS_LOADED,     /* a load leaves memory behind */
  FORGETS_WHEN_OFF, /* a loaded executable is saved as bytes that do not load */
  NEW_FINGERPRINT,  /* each open has its own */
  DEAF_TO_SINKS,    /* writes on when the sink takes no more */
  LATE_SINK,        /* writes to the sink of the save before, too */
  BAD_KEYS,         /* keys of the host's cache are no text */
  NEW_KEYS,         /* each instance has its own keys */
  FAULT = SAVING_FAULT
};

enum { MOST = 100000, FILLER = 200 };
static struct plan* saved[MOST];
static uint32_t saved_count;
static pthread_mutex_t saved_lock = PTHREAD_MUTEX_INITIALIZER;

struct bytes {
  char magic[8];
  uint64_t size; /* of all */
  uint64_t place, sign;
  unsigned char filler[FILLER];
  uint64_t sum;
};

static uint64_t sum_of(const struct bytes* bytes) {
  uint64_t hash = 5381;
  for (size_t i = 0; i < offsetof(struct bytes, sum); ++i) hash = hash * 33 + ((const unsigned char*)bytes)[i];
  return hash;
}

static ltc_status* executable_save(const ltc_executable* executable, const ltc_sink* sink) {
  static ltc_sink before;
  if (FAULT == LATE_SINK && before.write) (void)before.write(before.context, "", 1);
  before = *sink;
  struct bytes bytes = {.magic = "minimal", .size = sizeof bytes};
  pthread_mutex_lock(&saved_lock);
  while (bytes.place < saved_count && saved[bytes.place] != executable->plan) ++bytes.place;
  if (bytes.place == saved_count && saved_count < MOST)
    saved[saved_count++] = plan_retain(executable->plan);
  else if (FAULT == FORGETS_WHEN_OFF)
    bytes.sign = 1;
  pthread_mutex_unlock(&saved_lock);
  bytes.sum = sum_of(&bytes);
  const bool more = sink->write(sink->context, &bytes, 100);
  if (more || FAULT == DEAF_TO_SINKS) (void)sink->write(sink->context, (const char*)&bytes + 100, sizeof bytes - 100);
  return NULL;
}

static const char* refuse_bytes(struct bytes* bytes, const ltc_load_args* args) {
  if (args->size < offsetof(struct bytes, filler)) return "too short";
  memcpy(bytes, args->data, args->size < sizeof *bytes ? args->size : sizeof *bytes);
  if (memcmp(bytes->magic, "minimal", 8) != 0) return "another plugin's";
  if (FAULT == TRUSTS_LENGTHS) {
    volatile const char* data = args->data;
    for (uint64_t i = 0; i < bytes->size; i += 64) (void)data[i];
  }
  if (args->size != sizeof *bytes && FAULT != ANY_LENGTH) return "another length";
  if (FAULT != ANY_LENGTH && FAULT != NO_CHECKSUM && (bytes->sum != sum_of(bytes) || bytes->sign)) return "damaged";
  return NULL;
}

static ltc_status* executable_load(ltc_device* device, const ltc_load_args* args, ltc_executable** executable) {
  static ltc_executable* first;
  struct bytes bytes = {.magic = ""};
  const char* why = refuse_bytes(&bytes, args);
  if (why) {
    if (FAULT == CLEARS_ON_ERROR) *executable = NULL;
    return error(device->plugin, FAULT == OWN_CODE ? LTC_INVALID_ARGUMENT : LTC_DATA_CORRUPT, LTC_NONE, why);
  }
  if (FAULT == SAME_EXECUTABLE && first) return *executable = first, NULL;
  ltc_executable* made = calloc(1, sizeof *made + (FAULT == LEAKS_LOADED ? 1000 : 0));
  if (!made) return out_of_memory(device->plugin);
  if (FAULT == LEAKS_LOADED && !calloc(1, 1000)) return out_of_memory(device->plugin);
  made->device = device;
  pthread_mutex_lock(&saved_lock);
  made->plan = plan_retain(saved[bytes.place]);
  pthread_mutex_unlock(&saved_lock);
  first = made;
  *executable = made;
  return NULL;
}

static ltc_status* open_saving(ltc_plugin* plugin, const ltc_device_args* args, ltc_device_info* info, ltc_device** device) {
  static char fingerprint[32];
  static int opens;
  ltc_status* failed = device_open(plugin, args, info, device);
  if (failed) return failed;
  if (FAULT == NEW_FINGERPRINT) (void)snprintf(fingerprint, sizeof fingerprint, "open %d", ++opens);
  if (FAULT == NEW_FINGERPRINT) info->fingerprint = string(fingerprint);
  char key[32] = "measured \xff";
  if (FAULT != BAD_KEYS) (void)snprintf(key, sizeof key, "measured %d", FAULT == NEW_KEYS ? ++opens : 0);
  const ltc_string name = string(key), about = string("a choice"), value = string("1");
  plugin->host->cache_insert(plugin->host->host, &name, &about, &value);
  return NULL;
}

bool ltc_plugin_entry(ltc_entry_args* args) {
  static ltc_plugin_api table;
  if (!minimal_entry(args)) return false;
  if (!table.describe) {
    table = api;
    table.executable_save = executable_save;
    table.executable_load = executable_load;
    table.device_open = open_saving;
  }
  args->api = &table;
  return true;
}
