#include "core/ops/op_table.h"

#include <array>
#include <unordered_map>

namespace ltc {
namespace {

constexpr Tier minimal = Tier::kMinimal, derived = Tier::kDerived, whole = Tier::kWhole, host = Tier::kHost;

constexpr std::string_view name_of(std::string_view schema) { return schema.substr(0, schema.find('(')); }

constexpr OpRow kRows[] = {
#define LTC_OP(id, schema, tier, flags, static_args, doc) {id, name_of(schema), schema, tier, flags, static_args, doc},
#include "core/ops/op_table.inc"
#undef LTC_OP
};

constexpr bool ids_are_distinct() {
  std::array<bool, std::size(kRows) + 2> seen{};
  for (const OpRow& row : kRows) {
    if (row.id == 0 || row.id >= seen.size() || seen[row.id]) return false;
    seen[row.id] = true;
  }
  return true;
}
static_assert(ids_are_distinct(), "each row of op_table.inc needs an id of its own");

constexpr size_t count_minimal() {
  size_t count = 0;
  for (const OpRow& row : kRows) count += row.tier == Tier::kMinimal;
  return count;
}
static_assert(count_minimal() <= 64, "the minimal opset is a promise to vendors: at most 64 ops");

}  // namespace

bool OpRow::is_static(std::string_view arg) const {
  std::string_view rest = static_args;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    if (rest.substr(0, comma) == arg) return true;
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  }
  return false;
}

std::span<const OpRow> op_rows() { return kRows; }

const OpRow* find_op_row(std::string_view name) {
  static const auto* rows = [] {
    auto* table = new std::unordered_map<std::string_view, const OpRow*>();
    for (const OpRow& row : kRows) table->emplace(row.name, &row);
    return table;
  }();
  const auto it = rows->find(name);
  return it == rows->end() ? nullptr : it->second;
}

uint32_t stable_op_id(OpId op) {
  const OpRow* row = find_op_row(op_name(op));
  return row ? row->id : 0;
}

}  // namespace ltc
