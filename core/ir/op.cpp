#include "core/ir/op.h"

#include <cstring>

#include "core/base/hash.h"
#include "core/base/intern.h"

namespace ltc {
namespace {

uint64_t hash_text(uint64_t hash, std::string_view text) { return hash_bytes(hash, text.data(), text.size()); }

struct NameHash {
  uint64_t operator()(std::string_view name) const { return hash_text(0, name); }
};

struct AttrsHash {
  uint64_t operator()(const AttrList& attrs) const {
    uint64_t hash = attrs.size();
    for (const Attr& attr : attrs) {
      hash = hash_mix(hash_text(hash, attr.name), static_cast<uint64_t>(attr.kind));
      hash = hash_bytes(hash, attr.ints.data(), attr.ints.size() * sizeof(int64_t));
      hash = hash_bytes(hash, attr.floats.data(), attr.floats.size() * sizeof(double));
      for (const std::string& text : attr.strings) hash = hash_text(hash, text);
    }
    return hash;
  }
};

using NameTable = InternTable<std::string, NameHash>;
using AttrsTable = InternTable<AttrList, AttrsHash>;

NameTable& names() {
  static auto* table = [] {
    auto* fresh = new NameTable("ops");
    for (const char* reserved : {"param", "scalar", "result"}) fresh->intern(std::string_view(reserved));
    return fresh;
  }();
  return *table;
}

AttrsTable& attr_lists() {
  static auto* table = [] {
    auto* fresh = new AttrsTable("lists of constant arguments");
    fresh->intern(AttrList{});  // kNoAttrs
    return fresh;
  }();
  return *table;
}

}  // namespace

bool is_collective(OpId op) { return op_name(op).starts_with("ltc_c10d::"); }

bool Attr::operator==(const Attr& other) const {
  return name == other.name && kind == other.kind && ints == other.ints && strings == other.strings &&
         floats.size() == other.floats.size() &&
         (floats.empty() || std::memcmp(floats.data(), other.floats.data(), floats.size() * sizeof(double)) == 0);
}

OpId intern_op(std::string_view name) { return names().intern(name); }
const std::string& op_name(OpId op) { return names()[op]; }

AttrsId intern_attrs(const AttrList& attrs) { return attr_lists().intern(attrs); }
const AttrList& attrs_of(AttrsId id) { return attr_lists()[id]; }

const Attr* find_attr(const AttrList& attrs, std::string_view name) {
  for (const Attr& attr : attrs) {
    if (attr.name == name) return &attr;
  }
  return nullptr;
}

}  // namespace ltc
