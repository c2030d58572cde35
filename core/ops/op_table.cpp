#include "core/ops/op_table.h"

#include <array>
#include <unordered_map>
#include <vector>

namespace ltc {
namespace {

constexpr Tier minimal = Tier::kMinimal, derived = Tier::kDerived, whole = Tier::kWhole, host = Tier::kHost;

constexpr std::string_view name_of(std::string_view schema) { return schema.substr(0, schema.find('(')); }

// The compiler reads these rows; the library holds the packed form, which needs no relocations.
constexpr OpRow kRows[] = {
#define LTC_OP(id, schema, tier, flags, static_args, doc) {id, name_of(schema), schema, tier, flags, static_args},
#include "core/ops/op_table.inc"
#undef LTC_OP
};

struct PackedRow {
  uint16_t id, schema_size, static_args_size;
  Tier tier;
  uint8_t flags;
};

template <typename T>
constexpr T narrow(size_t number) {
  if (static_cast<T>(number) != number) throw "too large for a packed row";
  return static_cast<T>(number);
}

consteval size_t text_size() {
  size_t size = 0;
  for (const OpRow& row : kRows) size += row.schema.size() + row.static_args.size();
  return size;
}

struct Packed {
  std::array<PackedRow, std::size(kRows)> rows{};
  std::array<char, text_size()> text{};  // of each row: schema, static arguments
};

consteval Packed pack() {
  Packed packed;
  size_t row_count = 0, size = 0;
  const auto append = [&](std::string_view part) {
    for (const char c : part) packed.text[size++] = c;
    return narrow<uint16_t>(part.size());
  };
  for (const OpRow& row : kRows)
    packed.rows[row_count++] = {narrow<uint16_t>(row.id), append(row.schema), append(row.static_args), row.tier,
                                narrow<uint8_t>(row.flags)};
  return packed;
}
constexpr Packed kPacked = pack();

std::vector<OpRow> unpack() {
  std::vector<OpRow> rows;
  rows.reserve(kPacked.rows.size());
  const char* text = kPacked.text.data();
  for (const PackedRow& packed : kPacked.rows) {
    const std::string_view schema(text, packed.schema_size), static_args(text + packed.schema_size, packed.static_args_size);
    text += packed.schema_size + packed.static_args_size;
    rows.push_back({packed.id, name_of(schema), schema, packed.tier, packed.flags, static_args});
  }
  return rows;
}

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

std::span<const OpRow> op_rows() {
  static const auto* rows = new std::vector<OpRow>(unpack());
  return *rows;
}

const OpRow* find_op_row(std::string_view name) {
  static const auto* rows = [] {
    auto* table = new std::unordered_map<std::string_view, const OpRow*>();
    for (const OpRow& row : op_rows()) table->emplace(row.name, &row);
    return table;
  }();
  const auto it = rows->find(name);
  return it == rows->end() ? nullptr : it->second;
}

uint32_t stable_op_id(OpId op) {
  const OpRow* row = find_op_row(op_name(op));
  return row && row->id <= kLastReleasedOp ? row->id : 0;
}

}  // namespace ltc
