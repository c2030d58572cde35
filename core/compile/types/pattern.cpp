// Compares a call with a line of rules.inc, which describes the language.
#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>

#include "core/compile/types/rules.h"

namespace ltc::types {
namespace {

std::string_view take_word(std::string_view& text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  const size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

DType in_default(DType dtype) { return dtype == DType::kF64 ? DType::kF32 : dtype == DType::kC128 ? DType::kC64 : dtype; }

// The dtype that PyTorch computes in: dims before rank 0 before Python's numbers.
class Promotion {
 public:
  void add(const Type& type, bool is_number) {
    const size_t rank = is_number ? 2 : type.sizes.empty() ? 1 : 0;
    join(levels_[rank], is_number ? in_default(type.dtype) : type.dtype);
    join(all_, type.dtype);
    has_wide_float_ |= rank < 2 && number_kind(type.dtype) > 1;
  }
  DType result() const {
    DType high = levels_[0];
    for (const DType low : {levels_[1], levels_[2]}) {
      if (high == DType::kNone) high = low;
      if (low == DType::kNone || number_kind(low) <= number_kind(high)) continue;
      high = number_kind(high) == 2 ? complex_of(high) : promote(high, low);
    }
    return high;
  }
  // A number's own type is that of PyTorch's setting; a value of rank 0 may have been a number.
  bool gives(DType declared) const {
    const DType expected = result();
    if (declared == expected || (levels_[0] == DType::kNone && declared == all_)) return true;
    return !has_wide_float_ && number_kind(expected) > 1 && number_kind(expected) == number_kind(declared);
  }
  bool gives_float(DType declared) const { return number_kind(result()) > 1 ? gives(declared) : is_floating(declared); }

 private:
  static void join(DType& into, DType dtype) { into = into == DType::kNone ? dtype : promote(into, dtype); }

  DType levels_[3] = {}, all_ = DType::kNone;
  bool has_wide_float_ = false;
};

bool is_letter(char c) { return c >= 'a' && c <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Match {
 public:
  explicit Match(const Arguments& call) : call_(call) {}

  bool run(std::string_view alternative) {
    std::string_view operands = alternative.substr(0, alternative.find('>')), results = alternative.substr(operands.size() + 1);
    return match_operands(operands) && match_results(results);
  }

  std::vector<Dims> shapes;  // of the line's function

 private:
  // Sizes in order: a size that is known, or `factor` times a letter.
  struct Slot {
    int64_t value = 0;
    int letter = -1;
  };
  struct Slots {
    std::vector<Slot> before, behind;
    Dims* rest = nullptr;  // of an ellipsis that stands for any sizes so far
    std::vector<Slot>& last() { return rest ? behind : before; }
  };

  // An ellipsis that is known joins the slots; the first that is not, takes what the others leave.
  Slots read(std::string_view text) {
    Slots slots;
    int64_t factor = 0;
    const auto add = [&](int64_t value) { slots.last().push_back({value, -1}); };
    for (size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (is_digit(c) && i + 1 < text.size() && is_letter(text[i + 1])) {
        factor = c - '0';
      } else if (is_digit(c)) {
        add(c - '0');
      } else if (is_letter(c)) {
        slots.last().push_back({std::max<int64_t>(factor, 1), c - 'a'});
        factor = 0;
      } else if (c == '[' || c == '^') {
        const bool ones = c == '^';
        i += ones;
        const size_t end = text.find(']', i);
        for (const int64_t value : call_.ints(text.substr(i + 1, end - i - 1))) add(ones ? 1 : value);
        i = end;
      } else if (c == '$') {
        for (const int64_t value : shapes[std::min(next_shape_++, shapes.size() - 1)]) add(value);
      } else if (auto& known = ellipses_[static_cast<unsigned char>(c)]; known) {
        for (const int64_t value : *known) add(value);
      } else {
        slots.rest = &known.emplace();
      }
    }
    return slots;
  }

  bool fits(const Slot& slot, int64_t size) {
    if (slot.letter < 0) return slot.value == size;
    auto& letter = letters_[static_cast<size_t>(slot.letter)];
    if (!letter && size % slot.value == 0) letter = size / slot.value;
    return letter && *letter * slot.value == size;
  }

  bool match_sizes(std::string_view text, const Dims& sizes) {
    const Slots slots = read(text);
    const size_t fixed = slots.before.size() + slots.behind.size();
    if (sizes.size() < fixed || (!slots.rest && sizes.size() > fixed)) return false;
    const size_t behind = sizes.size() - slots.behind.size();
    for (size_t i = 0; i < slots.before.size(); ++i) {
      if (!fits(slots.before[i], sizes[i])) return false;
    }
    for (size_t i = 0; i < slots.behind.size(); ++i) {
      if (!fits(slots.behind[i], sizes[behind + i])) return false;
    }
    if (slots.rest)
      slots.rest->assign(sizes.begin() + static_cast<int64_t>(slots.before.size()), sizes.begin() + static_cast<int64_t>(behind));
    return true;
  }

  // Onto what the other operands have bound; alone, operands with the same ellipsis broadcast to it.
  bool match_broadcast(std::string_view text, const Dims& sizes) {
    if (text.size() == 1 && !is_letter(text[0])) {
      auto& ellipsis = ellipses_[static_cast<unsigned char>(text[0])];
      if (is_bound_[static_cast<unsigned char>(text[0])]) return broadcasts_to(sizes, *ellipsis);
      if (!ellipsis) ellipsis.emplace();
      return broadcast_onto(*ellipsis, sizes);
    }
    Dims to;
    for (const Slot& slot : read(text).before) {
      if (slot.letter >= 0 && !letters_[static_cast<size_t>(slot.letter)]) return false;
      to.push_back(slot.letter < 0 ? slot.value : *letters_[static_cast<size_t>(slot.letter)] * slot.value);
    }
    return broadcasts_to(sizes, to);
  }

  bool match_operands(std::string_view text) {
    struct Later {
      std::string_view word;
      const Dims* sizes;
    };
    std::vector<Later> later;
    std::string_view word;
    for (const Arguments::Operands& argument : call_.operands()) {
      if (argument.is_number) {
        add_number(argument);
        continue;
      }
      if (const std::string_view next = take_word(text); !next.empty()) word = next;  // else the last one again
      for (const ValueId value : argument.values) {
        if (value == kNone) continue;
        const Type& type = call_.graph().type(value);
        if (!match_operand_dtype(word[0], value, type)) return false;
        const std::string_view sizes = word.substr(1);
        if (sizes == "_") continue;
        if (sizes.starts_with('~')) {
          later.push_back({sizes.substr(1), &type.sizes});
        } else if (!match_sizes(reduced(sizes), type.sizes)) {
          return false;
        }
      }
    }
    for (unsigned char c : std::string_view("*+.")) is_bound_[c] = ellipses_[c].has_value();
    return std::ranges::all_of(later, [&](const Later& operand) { return match_broadcast(operand.word, *operand.sizes); });
  }

  // `%`: rank 0 unless the loss is not reduced.
  std::string_view reduced(std::string_view sizes) const {
    if (!sizes.starts_with('%')) return sizes;
    return call_.integer("reduction") == 0 ? sizes.substr(1) : "";
  }

  bool match_results(std::string_view text) {
    for (const ValueId value : call_.node().outputs) {
      const std::string_view word = take_word(text);
      if (word.empty()) return false;
      if (value == kNone) {
        next_shape_ += word.find('$') != word.npos;
        continue;
      }
      const Type& type = call_.graph().type(value);
      const std::string_view sizes = word.substr(1);
      if (!match_result_dtype(word[0], type.dtype) || (sizes != "_" && !match_sizes(reduced(sizes), type.sizes))) return false;
    }
    return true;
  }

  // ---- dtypes

  bool is_number(ValueId value) const {
    if (!call_.graph().type(value).sizes.empty()) return false;
    return std::ranges::any_of(call_.graph().params, [&](const Param& param) { return param.value == value && param.scalar; });
  }
  void add_number(const Arguments::Operands& argument) {
    if (argument.name == "alpha" || argument.name == "value" || argument.values[0] == kNone) return;
    numbers_.push_back({&call_.graph().type(argument.values[0]), is_number(argument.values[0])});
  }
  Promotion with_numbers() const {
    Promotion all = promotion_;
    for (const auto& [type, number] : numbers_) all.add(*type, number);
    for (const OpArg& arg : op_args(call_.row())) {
      if (arg.kind != OpArgKind::kNumber || arg.name == "alpha" || arg.name == "value") continue;
      const Attr* attr = call_.constant(arg.name);
      if (!attr || attr->kind == AttrKind::kNone) continue;
      const DType dtype = attr->kind == AttrKind::kFloat  ? DType::kF64
                          : attr->kind == AttrKind::kBool ? DType::kBool
                                                          : DType::kI64;
      all.add(type_of(scalar_type(dtype)), true);
    }
    return all;
  }

  bool bind(char code, DType dtype) {
    DType& bound = dtypes_[static_cast<unsigned char>(code)];
    if (bound == DType::kNone) bound = dtype;
    return bound == dtype;
  }
  DType bound(char code) const { return dtypes_[static_cast<unsigned char>(code)]; }
  // Statistics of 16-bit floats may be of 32 bits.
  bool is_statistic(DType dtype) const {
    const DType of = real_of(bound('T'));
    return dtype == of || (is_floating(of) && dtype_size_bytes(of) < 4 && dtype == DType::kF32);
  }
  std::optional<DType> asked(const char* name) const {
    const Attr* attr = call_.constant(name);
    return attr && attr->kind == AttrKind::kDType ? std::optional(static_cast<DType>(attr->ints[0])) : std::nullopt;
  }

  // Whether new values may have the dtype: a float as PyTorch's setting says, or that of the number that fills them.
  bool is_default(DType dtype) const {
    const DType filled = with_numbers().result();
    return is_floating(dtype) || (filled != DType::kNone && with_numbers().gives(dtype));
  }

  bool match_operand_dtype(char code, ValueId value, const Type& type) {
    const DType dtype = type.dtype;
    switch (code) {
      case 'T':
      case 'U':
      case 'V': return bind(code, dtype);
      case 'P': return promotion_.add(type, is_number(value)), true;
      case 'A': return is_statistic(dtype);
      case 'i': return dtype == DType::kI64;
      case 'k': return dtype == DType::kI64 || dtype == DType::kI32 || type.element_count == 0;
      case 'w': return dtype == DType::kI32;
      case 'b': return dtype == DType::kBool || dtype == DType::kU8;
      default: return code == 'X';
    }
  }

  bool match_result_dtype(char code, DType dtype) {
    const DType t = bound('T');
    switch (code) {
      case 'T':
      case 'U':
      case 'V': return bind(code, dtype);
      case 'P': return promotion_.gives(dtype);
      case 'N': return with_numbers().gives(dtype);
      case 'F': return with_numbers().gives_float(dtype);
      case 'Q': return with_numbers().gives(dtype) || with_numbers().gives_float(dtype);
      case 'H': return is_complex(promotion_.result()) ? dtype == real_of(promotion_.result()) : promotion_.gives_float(dtype);
      case 'R': return dtype == real_of(t);
      case 'A': return is_statistic(dtype);
      case 'G': return bound('U') == DType::kNone ? is_statistic(dtype) : dtype == bound('U');
      case 'Z': return is_complex(dtype) && real_of(dtype) == real_of(t);
      case 'D': return asked("dtype") ? dtype == *asked("dtype") : t == DType::kNone ? is_default(dtype) : dtype == t;
      case 'E': return dtype == asked("dtype").value_or(real_of(t));
      case 'S': return dtype == asked("dtype").value_or(number_kind(t) < 2 ? DType::kI64 : t);
      case 'h': return dtype == (call_.flag("half_to_float") ? DType::kF32 : t);
      case 'j': return dtype == asked("input_dtype");
      case 'o': return dtype == (call_.flag("out_int32") ? DType::kI32 : DType::kI64);
      case 'i': return dtype == DType::kI64;
      case 'w': return dtype == DType::kI32;
      case 'b': return dtype == DType::kBool;
      case 'y': return dtype == (t == DType::kU8 ? DType::kU8 : DType::kBool);
      default: return code == 'X';
    }
  }

  const Arguments& call_;
  std::array<std::optional<int64_t>, 26> letters_;
  std::array<std::optional<Dims>, 128> ellipses_;
  std::array<bool, 128> is_bound_{};
  std::array<DType, 128> dtypes_{};
  Promotion promotion_;
  std::vector<std::pair<const Type*, bool>> numbers_;
  size_t next_shape_ = 0;
};

SizeFunction find_function(std::string_view name) {
  static const auto* functions = [] {
    auto* table = new std::unordered_map<std::string_view, SizeFunction>();
    for (const auto& family : {view_functions(), index_functions(), window_functions(), other_functions()}) {
      for (const auto& [function_name, function] : family) table->emplace(function_name, function);
    }
    return table;
  }();
  return functions->at(name);
}

constexpr std::pair<std::string_view, std::string_view> kLines[] = {
#define LTC_TYPES(rule, ops) {rule, ops},
#include "core/compile/types/rules.inc"
#undef LTC_TYPES
};

bool obeys_one(const Arguments& call, std::string_view alternative) {
  Match match(call);
  while (alternative.starts_with(' ')) alternative.remove_prefix(1);
  if (alternative.starts_with('@') && !find_function(take_word(alternative).substr(1))(call, match.shapes)) return false;
  return alternative.empty() || match.run(alternative);
}

}  // namespace

std::vector<std::string_view> ops_with_rules() {
  std::vector<std::string_view> all;
  for (auto [rule, ops] : kLines) {
    for (std::string_view name = take_word(ops); !name.empty(); name = take_word(ops)) all.push_back(name);
  }
  return all;
}

std::string_view find_rule(std::string_view op) {
  static const auto* rules = [] {
    auto* table = new std::unordered_map<std::string_view, std::string_view>();
    for (auto [rule, ops] : kLines) {
      for (std::string_view name = take_word(ops); !name.empty(); name = take_word(ops)) table->emplace(name, rule);
    }
    return table;
  }();
  const auto found = rules->find(op.starts_with("aten::") ? op.substr(6) : op);
  return found == rules->end() ? std::string_view() : found->second;
}

bool obeys(const Arguments& call, std::string_view rule) {
  while (true) {
    const size_t end = std::min(rule.find('|'), rule.size());
    if (obeys_one(call, rule.substr(0, end))) return true;
    if (end == rule.size()) return false;
    rule.remove_prefix(end + 1);
  }
}

std::optional<size_t> dim_of(int64_t dim, size_t rank) {
  const auto dims = static_cast<int64_t>(std::max<size_t>(rank, 1));
  if (dim < -dims || dim >= dims) return std::nullopt;
  return static_cast<size_t>(dim < 0 ? dim + dims : dim);
}

bool are_moderate(const Dims& numbers) { return std::ranges::all_of(numbers, is_moderate); }

bool broadcast_onto(Dims& sizes, const Dims& more) {
  if (more.size() > sizes.size()) sizes.insert(sizes.begin(), more.size() - sizes.size(), 1);
  for (size_t i = 1; i <= more.size(); ++i) {
    int64_t& size = sizes[sizes.size() - i];
    const int64_t other = more[more.size() - i];
    if (size != other && size != 1 && other != 1) return false;
    if (size == 1) size = other;
  }
  return true;
}

}  // namespace ltc::types
