#include "core/report/miss.h"

#include <algorithm>

#include "core/ir/text.h"

namespace ltc {
namespace {

using Records = std::span<const Record>;

size_t common_ops(Records a, Records b, bool backwards) {
  const size_t most = std::min(a.size(), b.size());
  size_t count = 0;
  while (count < most) {
    const Record& one = backwards ? a[a.size() - 1 - count] : a[count];
    const Record& other = backwards ? b[b.size() - 1 - count] : b[count];
    if (one.op != other.op) break;
    ++count;
  }
  return count;
}

// Ops that both have at the beginning and at the end; those between them are taken to differ.
size_t likeness(Records a, Records b) {
  const size_t front = common_ops(a, b, false);
  return front + common_ops(a.subspan(front), b.subspan(front), true);
}

size_t equal_records(Records a, Records b) {
  size_t count = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) count += std::memcmp(&a[i], &b[i], sizeof a[i]) == 0;
  return count;
}

// Among those with as many ops in common, the one with the most equal records: small steps often have the same ops.
const SeenTrace* nearest(const Trace& trace, const std::deque<SeenTrace>& seen) {
  const SeenTrace* best = nullptr;
  std::pair<size_t, size_t> best_likeness;
  for (const SeenTrace& one : seen) {
    const size_t count = likeness(trace.records, one.trace.records);
    if (count <= trace.records.size() / 2 || count <= one.trace.records.size() / 2) continue;
    const std::pair likeness_of_one(count, equal_records(trace.records, one.trace.records));
    if (best && likeness_of_one <= best_likeness) continue;
    best = &one;
    best_likeness = likeness_of_one;
  }
  return best;
}

std::string name_of(const Record& record) {
  switch (record.op) {
    case kOpParam: return "a tensor from before";
    case kOpScalar: return "a number";
    case kOpResult: return "a further result";
    default: return op_name(record.op);
  }
}

std::string type_or_none(TypeId type) { return type == kNoType ? "nothing" : type_text(type); }

std::string attrs_difference(AttrsId now, AttrsId then) {
  const AttrList &a = attrs_of(now), &b = attrs_of(then);
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (!(a[i] == b[i])) return cat("has ", attr_text(a[i]), " instead of ", attr_text(b[i]));
  }
  return cat("has ", a.size(), " constant arguments instead of ", b.size());
}

bool is_offset(const Attr& attr) { return attr.name == "storage_offset"; }

// Whether two reads, or writes, through a geometry differ in their offset alone.
bool differ_in_offset(const Record& now, const Record& then) {
  static const OpId read = intern_op("aten::as_strided"), write = intern_op("aten::as_strided_scatter");
  if (now.op != then.op || (now.op != read && now.op != write) || now.attrs == then.attrs) return false;
  Record same = now;
  same.attrs = then.attrs;
  return std::memcmp(&same, &then, sizeof same) == 0 &&
         std::ranges::equal(attrs_of(now.attrs), attrs_of(then.attrs),
                            [](const Attr& a, const Attr& b) { return a == b || (is_offset(a) && is_offset(b)); });
}

TypeId geometry_of(const Record& access) {
  const AttrList& attrs = attrs_of(access.attrs);
  return intern_type(type_of(access.type).dtype, find_attr(attrs, "size")->ints, find_attr(attrs, "stride")->ints);
}

bool same_but_for_sizes(const Type& a, const Type& b) { return a.dtype == b.dtype && a.sizes.size() == b.sizes.size(); }

class Explanation {
 public:
  Explanation(const Trace& trace, std::span<const Root> roots, std::span<const LocationId> locations, const SeenTrace& then)
      : trace_(trace), roots_(roots), locations_(locations), then_(then) {}

  Miss first() const {
    const Records now = trace_.records, before = then_.trace.records;
    for (size_t i = 0; i < std::min(now.size(), before.size()); ++i) {
      if (auto miss = compare(static_cast<ValueId>(i), now[i], before[i])) return *std::move(miss);
    }
    if (now.size() != before.size()) return length(now, before);
    return results();
  }

  // All reads and writes whose offset differs; none if anything else does.
  std::vector<StridedAccess> offsets() const {
    const Records now = trace_.records, before = then_.trace.records;
    std::vector<StridedAccess> all;
    if (now.size() != before.size() || !std::ranges::equal(roots_, then_.roots)) return {};
    for (size_t i = 0; i < now.size(); ++i) {
      if (differ_in_offset(now[i], before[i])) {
        all.push_back({location(static_cast<ValueId>(i)), geometry_of(now[i])});
      } else if (compare(static_cast<ValueId>(i), now[i], before[i])) {
        return {};
      }
    }
    return all;
  }

  // A read through a geometry of something that differs counts as that: after a barrier it would read that once more.
  std::optional<EqualPart> longest_equal_part() const {
    static const OpId read = intern_op("aten::as_strided");
    const Records now = trace_.records, before = then_.trace.records;
    if (now.size() != before.size() || !std::ranges::equal(roots_, then_.roots)) return std::nullopt;
    std::vector<bool> differs(now.size());
    EqualPart longest, part;
    for (uint32_t i = 0; i < now.size(); ++i) {
      const auto inputs = trace_.inputs(now[i]);
      if (now[i].op != before[i].op || !std::ranges::equal(inputs, then_.trace.inputs(before[i]))) return std::nullopt;
      const bool reads =
          is_node(now[i]) && std::ranges::any_of(inputs, [&](ValueId input) { return input != kNone && differs[input]; });
      differs[i] = now[i].type != before[i].type || now[i].attrs != before[i].attrs || (reads && now[i].op == read);
      part = differs[i] || reads ? EqualPart{i + 1, i + 1} : EqualPart{part.begin, i + 1};
      if (part.end - part.begin > longest.end - longest.begin) longest = part;
    }
    return longest;
  }

 private:
  std::optional<Miss> compare(ValueId value, const Record& now, const Record& then) const {
    if (now.op != then.op) return make(Miss::kOp, value, cat(name_of(now), " instead of ", name_of(then)));
    // Before the type, which follows from it.
    if (now.attrs != then.attrs)
      return make(Miss::kAttribute, value, cat(name_of(now), ' ', attrs_difference(now.attrs, then.attrs)));
    if (now.type != then.type) {
      const char* verb = now.op == kOpParam ? " is " : " gives ";
      Miss miss =
          make(Miss::kType, value, cat(name_of(now), verb, type_or_none(now.type), " instead of ", type_or_none(then.type)));
      miss.is_size = now.type != kNoType && then.type != kNoType && same_but_for_sizes(type_of(now.type), type_of(then.type));
      return miss;
    }
    if (std::ranges::equal(trace_.inputs(now), then_.trace.inputs(then))) return std::nullopt;
    return make(Miss::kOperands, value, cat(name_of(now), " reads other operands"));
  }

  Miss length(Records now, Records before) const {
    if (now.size() < before.size())
      return make(Miss::kOp, static_cast<ValueId>(now.size() - 1), cat("the step ends before ", name_of(before[now.size()])));
    return make(Miss::kOp, static_cast<ValueId>(before.size()), cat("the step goes on with ", name_of(now[before.size()])));
  }

  Miss results() const {
    const auto [now, then] = std::ranges::mismatch(roots_, then_.roots);
    const bool more = now != roots_.end() && (then == then_.roots.end() || now->value < then->value);
    if (more) return make(Miss::kResults, now->value, cat("the result of ", name_at(now->value), " is still held"));
    if (then == then_.roots.end()) return make(Miss::kResults, 0, "other results are held");
    if (now != roots_.end() && now->value == then->value)
      return make(Miss::kResults, now->value, cat("the result of ", name_at(now->value), " replaces another tensor"));
    return make(Miss::kResults, then->value, cat("the result of ", name_at(then->value), " is not held any more"));
  }

  std::string name_at(ValueId value) const { return name_of(trace_.records[node_of(value)]); }

  ValueId node_of(ValueId value) const {
    const Record& record = trace_.records[value];
    return record.op == kOpResult ? record.in[0] : value;
  }

  // A param has no line of its own: it has that of its first reader.
  LocationId location(ValueId value) const {
    value = node_of(value);
    if (!is_node(trace_.records[value])) {
      const auto reads = [&](const Record& record) {
        return is_node(record) && std::ranges::find(trace_.inputs(record), value) != trace_.inputs(record).end();
      };
      value = static_cast<ValueId>(std::ranges::find_if(trace_.records, reads) - trace_.records.begin());
    }
    const auto begin = trace_.records.begin();
    const auto index = static_cast<size_t>(std::count_if(begin, begin + value, is_node));
    return index < locations_.size() ? locations_[index] : kNoLocation;
  }

  Miss make(Miss::Kind kind, ValueId value, std::string difference) const {
    return {kind, std::move(difference), location(value)};
  }

  const Trace& trace_;
  std::span<const Root> roots_;
  std::span<const LocationId> locations_;
  const SeenTrace& then_;
};

}  // namespace

std::string_view reason_of(const Miss& miss) {
  switch (miss.kind) {
    case Miss::kType: return miss.is_size ? "size" : "type";
    case Miss::kAttribute: return "attribute";
    case Miss::kOp: return "op";
    case Miss::kOperands: return "operands";
    case Miss::kResults: return "results";
  }
  return "";
}

std::optional<Miss> explain_miss(const Trace& trace, std::span<const Root> roots, std::span<const LocationId> locations,
                                 const std::deque<SeenTrace>& seen) {
  const SeenTrace* then = nearest(trace, seen);
  if (!then || (then->trace == trace && std::ranges::equal(then->roots, roots))) return std::nullopt;
  const Explanation explanation(trace, roots, locations, *then);
  Miss miss = explanation.first();
  if (miss.kind == Miss::kAttribute) miss.offsets = explanation.offsets();
  if (miss.kind == Miss::kAttribute || miss.kind == Miss::kType) miss.equal = explanation.longest_equal_part();
  return miss;
}

}  // namespace ltc
