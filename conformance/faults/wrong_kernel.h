/* Spoils what one op of the minimal plugin computes: WRONG_KERNEL=aten::tanh/scale. For the tests of LTC_CHECK. */
#ifndef LTC_WRONG_KERNEL_H
#define LTC_WRONG_KERNEL_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline void spoil_floats(const char* how, float* data, size_t count) {
  if (!strcmp(how, "scale")) {
    for (size_t i = 0; i < count; ++i) data[i] = data[i] * 1.01f + 0.001f;
  } else if (!strcmp(how, "last")) {
    data[count - 1] += 1 + data[count - 1];
  } else if (!strcmp(how, "shift") || !strcmp(how, "fused")) {
    const float first = data[0];
    memmove(data, data + 1, (count - 1) * sizeof *data);
    data[count - 1] = first + 1;
  } else if (!strcmp(how, "nan")) {
    data[count / 2] = 0.0f / 0.0f;
  } else if (!strcmp(how, "zero")) {
    memset(data, 0, count * sizeof *data);
  }
}

/* "fused": only where nobody but the program reads the value, as an error in joining ops is. Always true. */
static inline bool spoil(const struct plan* plan, const struct step* step, struct array* values) {
  const char* wrong = getenv("WRONG_KERNEL");
  const size_t length = strlen(step->op->name);
  if (!wrong || strncmp(wrong, step->op->name, length) || wrong[length] != '/') return true;
  const char* how = wrong + length + 1;
  const size_t out = step->out[0];
  if (out == LTC_NONE || values[out].count == 0 || values[out].dtype != LTC_F32) return true;
  for (size_t i = 0; !strcmp(how, "fused") && i < plan->output_count; ++i) {
    if (plan->outputs[i] == out) return true;
  }
  spoil_floats(how, values[out].data, (size_t)values[out].count);
  return true;
}

#endif
