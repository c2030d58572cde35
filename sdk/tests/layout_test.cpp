// As a vendor's C++ compiler sees it, and the type of every slot and field, which layout alone does not pin.
#include "layout.h"

#include <type_traits>

#define SLOT(table, name, returns, parameters) \
  static_assert(std::is_same<decltype(table::name), returns(LTC_CALL*) parameters>::value, #table "::" #name);
#define TYPE(type, field, field_type) \
  static_assert(std::is_same<decltype(static_cast<type*>(nullptr)->field), field_type>::value, #type "::" #field);
#define ALIAS(name, type) static_assert(std::is_same<name, type>::value, #name);
#define VALUE(name, value)
#include "signatures_1_0.inc"
static_assert(std::is_same<ltc_plugin_entry_fn, bool LTC_CALL(ltc_entry_args*)>::value, "entry");

int main() { return 0; }
