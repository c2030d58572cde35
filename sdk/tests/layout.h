/* Asserts, at compile time and in C99 as in C++, that the headers have the layout and values of each released version. */
#ifndef LTC_LAYOUT_H
#define LTC_LAYOUT_H

#include "ltc/collective.h"
#include "ltc/plugin.h"
#include "ltc/precision.h"
#include "ltc/profile.h"
#include "ltc/symbolic.h"

#define LTC_CHECK(name, condition) typedef char ltc_check_##name[(condition) ? 1 : -1]

#if defined(__LP64__)
#define FIELD(type, field, offset) LTC_CHECK(offset_of_##type##_##field, offsetof(type, field) == (offset));
/* The last field of 1.0 is the last one, but for tail padding, until a minor version appends another and pins it in a file of its
 * own. */
#define LAST(type, field, size_to, size)                                      \
  LTC_CHECK(size_to_##type##_##field, LTC_SIZE_TO(type, field) == (size_to)); \
  LTC_CHECK(size_of_##type, sizeof(type) == (size));                          \
  LTC_CHECK(last_of_##type, (size) - (size_to) < sizeof(void*));
#include "layout_1_0.inc"
#undef FIELD
#undef LAST
LTC_CHECK(scalar_size, sizeof(ltc_scalar) == 16);
#endif

/* 14 required slots, in three groups, and then the optional ones. */
#define LTC_SLOT(name) (offsetof(ltc_plugin_api, name) / sizeof(void*) - offsetof(ltc_plugin_api, describe) / sizeof(void*))
LTC_CHECK(memory_group, LTC_SLOT(transfer) == 5);
LTC_CHECK(computing_group, LTC_SLOT(claims) == 6 && LTC_SLOT(execute) == 11);
LTC_CHECK(asynchronous_group, LTC_SLOT(event_wait) == 12 && LTC_SLOT(event_destroy) == 13);
LTC_CHECK(first_optional, LTC_SLOT(plugin_close) == 14);

#define VALUE(name, value) LTC_CHECK(value_of_##name, name == (value));
#define SLOT(table, name, returns, parameters)
#define TYPE(type, field, field_type)
#define ALIAS(name, type)
#include "signatures_1_0.inc"
#undef VALUE
#undef SLOT
#undef TYPE
#undef ALIAS
LTC_CHECK(version, LTC_ABI_MAJOR == 1 && LTC_ABI_MINOR == 0);

#endif
