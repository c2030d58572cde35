// What libltc_core.so exports: the few things that the Python module and C++ programs call. All else is hidden.
#pragma once

#define LTC_API __attribute__((visibility("default")))
