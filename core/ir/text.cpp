#include "core/ir/text.h"

#include <charconv>

namespace ltc {
namespace {

constexpr std::string_view kIndent = "  ";

template <typename Items, typename Print>
void print_list(std::string& out, const Items& items, std::string_view separator, const Print& print_one) {
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += separator;
    first = false;
    print_one(item);
  }
}

// Shortest text that reads back as the same double, and that cannot be taken for an integer.
void print_float(std::string& out, double value) {
  char text[32];
  const std::string_view digits(text, std::to_chars(text, text + sizeof text, value).ptr - text);
  out += digits;
  if (digits.find_first_of(".en") == std::string_view::npos) out += ".0";
}

void print_string(std::string& out, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      ((out += "\\x") += kHex[c >> 4]) += kHex[c & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

void print_ints(std::string& out, std::span<const int64_t> values) {
  print_list(out, values, ",", [&](int64_t value) { out += std::to_string(value); });
}

void print_attr_value(std::string& out, const Attr& attr) {
  switch (attr.kind) {
    case AttrKind::kNone: out += "none"; return;
    case AttrKind::kInt: out += std::to_string(attr.ints[0]); return;
    case AttrKind::kFloat: print_float(out, attr.floats[0]); return;
    case AttrKind::kBool: out += attr.ints[0] ? "true" : "false"; return;
    case AttrKind::kString: print_string(out, attr.strings[0]); return;
    case AttrKind::kDType: out += dtype_name(static_cast<DType>(attr.ints[0])); return;
    case AttrKind::kInts:
      out += '[';
      print_ints(out, attr.ints);
      break;
    case AttrKind::kFloats:
      out += attr.floats.empty() ? "floats[" : "[";
      print_list(out, attr.floats, ",", [&](double value) { print_float(out, value); });
      break;
    case AttrKind::kStrings:
      out += attr.strings.empty() ? "strings[" : "[";
      print_list(out, attr.strings, ",", [&](const std::string& value) { print_string(out, value); });
      break;
  }
  out += ']';
}

void print_attr(std::string& out, const Attr& attr) {
  (out += attr.name) += '=';
  print_attr_value(out, attr);
}

void print_type(std::string& out, const Type& type) {
  (out += dtype_name(type.dtype)) += '[';
  print_ints(out, type.sizes);
  if (type.strides != contiguous_strides(type.sizes)) {
    out += ';';
    print_ints(out, type.strides);
  }
  out += ']';
}

class Printer {
 public:
  explicit Printer(const Graph& graph) : graph_(graph) {}

  std::string run() {
    out_ += "graph(";
    print_list(out_, graph_.params, ", ", [&](const Param& param) { param_text(param); });
    out_ += ") {\n";
    for (const Node& node : graph_.nodes) node_text(node);
    (out_ += kIndent) += "return";
    if (!graph_.outputs.empty()) out_ += ' ';
    print_list(out_, graph_.outputs, ", ", [&](ValueId value) { use(value); });
    out_ += "\n}\n";
    return std::move(out_);
  }

 private:
  void use(ValueId value) { value == kNone ? out_ += "none" : (out_ += '%') += std::to_string(value); }

  void define(ValueId value) {
    if (value == kNone) {
      out_ += '_';
      return;
    }
    use(value);
    out_ += ": ";
    print_type(out_, graph_.type(value));
  }

  void param_text(const Param& param) {
    if (param.scalar) {
      use(param.value);
      ((out_ += ": ") += dtype_name(graph_.type(param.value).dtype)) += " scalar";
    } else {
      define(param.value);
    }
    if (param.alias_output != kNone) (out_ += " -> ") += std::to_string(param.alias_output);
  }

  void node_text(const Node& node) {
    out_ += kIndent;
    print_list(out_, node.outputs, ", ", [&](ValueId value) { define(value); });
    ((out_ += " = ") += op_name(node.op)) += '(';
    print_list(out_, node.inputs, ", ", [&](ValueId value) { use(value); });
    out_ += ')';
    if (node.attrs != kNoAttrs) {
      out_ += " {";
      print_list(out_, attrs_of(node.attrs), ", ", [&](const Attr& attr) { print_attr(out_, attr); });
      out_ += '}';
    }
    if (node.location != kNoLocation) (out_ += "  # ") += location_text(node.location);
    out_ += '\n';
  }

  const Graph& graph_;
  std::string out_;
};

}  // namespace

std::string print(const Graph& graph) { return Printer(graph).run(); }

std::string type_text(TypeId type) {
  std::string text;
  print_type(text, type_of(type));
  return text;
}

std::string attr_text(const Attr& attr) {
  std::string text;
  print_attr(text, attr);
  return text;
}

}  // namespace ltc
