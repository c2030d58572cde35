#include <cctype>
#include <charconv>
#include <unordered_map>

#include "core/base/error.h"
#include "core/base/number.h"
#include "core/ir/text.h"

namespace ltc {
namespace {

// Recursive descent over the text; one token ahead.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Graph run() {
    expect_word("graph");
    expect("(");
    if (!accept(")")) {
      do param();
      while (accept(","));
      expect(")");
    }
    expect("{");
    while (!accept_word("return")) node();
    if (peek() != '}') {
      do graph_.outputs.push_back(use());
      while (accept(","));
    }
    expect("}");
    if (peek() != 0) expected("the end");
    return std::move(graph_);
  }

 private:
  // Tokens. Space, line ends included, separates and is otherwise free.

  [[noreturn]] void expected(std::string_view what) const {
    const std::string_view rest = text_.substr(at_, text_.substr(at_, 20).find('\n'));
    fail(Code::kInvalidArgument, "[parse] line ", line_, ": expected ", what, ", got '", rest.substr(0, 20), "'");
  }

  char peek() {
    for (; at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])); ++at_) line_ += text_[at_] == '\n';
    return at_ < text_.size() ? text_[at_] : 0;
  }

  bool accept(std::string_view symbol) {
    peek();
    if (text_.substr(at_, symbol.size()) != symbol) return false;
    at_ += symbol.size();
    return true;
  }

  void expect(std::string_view symbol) {
    if (!accept(symbol)) expected(cat("'", symbol, "'"));
  }

  // Letters, digits and what joins the names of ops and attributes; numbers are words too.
  std::string_view word() {
    peek();
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || joins(text_[at_]))) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  static bool joins(char c) { return c == '_' || c == '.' || c == ':' || c == '-' || c == '+'; }

  std::string_view rest_of_line() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    const size_t begin = at_;
    at_ = std::min(text_.find('\n', at_), text_.size());
    return text_.substr(begin, at_ - begin);
  }

  bool accept_word(std::string_view wanted) {
    peek();
    const size_t begin = at_;
    if (word() == wanted) return true;
    at_ = begin;
    return false;
  }

  void expect_word(std::string_view wanted) {
    if (!accept_word(wanted)) expected(cat("'", wanted, "'"));
  }

  std::string_view name(std::string_view what) {
    const std::string_view found = word();
    if (found.empty()) expected(what);
    return found;
  }

  template <typename Number>
  Number number() {
    peek();
    const size_t begin = at_;
    Number value;
    if (!read_number(digits(), value)) {
      at_ = begin;
      expected("an integer");
    }
    return value;
  }
  std::string_view digits() {
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isdigit(static_cast<unsigned char>(text_[at_])) || (at_ == begin && text_[at_] == '-')))
      ++at_;
    return text_.substr(begin, at_ - begin);
  }

  // Values.

  uint32_t label() {
    expect("%");
    return number<uint32_t>();
  }

  ValueId use() {
    const auto known = values_.find(label());
    if (known == values_.end()) expected("a value that is defined before");
    return known->second;
  }

  void define(uint32_t label, ValueId value) {
    if (!values_.emplace(label, value).second) expected(cat("%", label, " to be defined once"));
  }

  DType dtype() {
    peek();
    const size_t begin = at_;
    const DType found = dtype_from_name(word());
    if (found == DType::kNone) {
      at_ = begin;
      expected("a dtype");
    }
    return found;
  }

  std::vector<int64_t> dims() {
    std::vector<int64_t> result;
    if (peek() == ']' || peek() == ';') return result;
    do result.push_back(number<int64_t>());
    while (accept(","));
    return result;
  }

  TypeId sizes_and_strides(DType dtype) {
    expect("[");
    const std::vector<int64_t> sizes = dims();
    const bool has_strides = accept(";");
    std::vector<int64_t> strides = has_strides ? dims() : std::vector<int64_t>(sizes.size());
    if (strides.size() != sizes.size()) expected("one stride per size");
    if (!is_valid({dtype, sizes, strides})) expected("sizes of 0 or more, and no more bytes than 63 bits count, before this");
    if (!has_strides) strides = contiguous_strides(sizes);
    expect("]");
    return intern_type(dtype, sizes, strides);
  }

  // Parts of a graph.

  void param() {
    const uint32_t id = label();
    expect(":");
    const DType type = dtype();
    const bool scalar = accept_word("scalar");
    define(id, graph_.add_param(scalar ? scalar_type(type) : sizes_and_strides(type), scalar));
    if (accept("->")) graph_.params.back().alias_output = number<uint32_t>();
  }

  ValueId output() {
    if (accept("_")) return kNone;
    const uint32_t id = label();
    expect(":");
    const ValueId value = graph_.add_value(sizes_and_strides(dtype()));
    pending_.emplace_back(id, value);
    return value;
  }

  void node() {
    Node node{};
    do node.outputs.push_back(output());
    while (accept(","));
    expect("=");
    node.op = intern_op(name("the name of an op"));
    expect("(");
    if (!accept(")")) {
      do node.inputs.push_back(accept_word("none") ? kNone : use());
      while (accept(","));
      expect(")");
    }
    if (accept("{")) node.attrs = attrs();
    if (accept("#")) node.location = intern_location(rest_of_line());
    // Only now: a node does not read its own results.
    for (const auto& [id, value] : pending_) define(id, value);
    pending_.clear();
    graph_.nodes.push_back(std::move(node));
  }

  AttrsId attrs() {
    AttrList list;
    do {
      Attr attr{std::string(name("the name of an attribute"))};
      expect("=");
      attr_value(attr);
      list.push_back(std::move(attr));
    } while (accept(","));
    expect("}");
    return intern_attrs(list);
  }

  void attr_value(Attr& attr) {
    if (peek() == '[') return list_value(attr);
    if (peek() == '"') {
      attr.kind = AttrKind::kString;
      attr.strings.push_back(string());
      return;
    }
    const size_t begin = at_;
    const std::string_view text = word();
    if (text == "none") return;
    if ((text == "floats" || text == "strings") && accept("[")) {
      attr.kind = text == "floats" ? AttrKind::kFloats : AttrKind::kStrings;
      return expect("]");
    }
    if (text == "true" || text == "false") {
      attr.kind = AttrKind::kBool;
      attr.ints = {text == "true"};
    } else if (const DType dtype = dtype_from_name(text); dtype != DType::kNone) {
      attr.kind = AttrKind::kDType;
      attr.ints = {static_cast<int64_t>(dtype)};
    } else if (number_value(attr, text)) {
      attr.kind = attr.floats.empty() ? AttrKind::kInt : AttrKind::kFloat;
    } else {
      at_ = begin;
      expected("the value of an attribute");
    }
  }

  bool number_value(Attr& attr, std::string_view text) {
    int64_t integer;
    double real;
    if (read_number(text, integer)) {
      attr.ints.push_back(integer);
    } else if (read_number(text, real)) {
      attr.floats.push_back(real);
    } else {
      return false;
    }
    return true;
  }

  void list_value(Attr& attr) {
    expect("[");
    attr.kind = AttrKind::kInts;
    if (accept("]")) return;
    do {
      if (peek() == '"') {
        attr.strings.push_back(string());
        continue;
      }
      const size_t begin = at_;
      if (!number_value(attr, word())) {
        at_ = begin;
        expected("a number or a string");
      }
    } while (accept(","));
    if (attr.ints.empty() + attr.floats.empty() + attr.strings.empty() != 2) expected("a list of one kind");
    if (!attr.floats.empty()) attr.kind = AttrKind::kFloats;
    if (!attr.strings.empty()) attr.kind = AttrKind::kStrings;
    expect("]");
  }

  std::string string() {
    expect("\"");
    std::string result;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') {
      result += text_[at_] == '\\' ? escape() : text_[at_];
      ++at_;
    }
    if (at_ >= text_.size() || text_[at_] != '"') expected("'\"'");
    ++at_;
    return result;
  }

  // At a backslash; leaves at_ on the last character of the escape.
  char escape() {
    const std::string_view rest = text_.substr(at_ + 1);
    unsigned char byte = 0;
    if (rest.starts_with('x') && rest.size() > 2 &&
        std::from_chars(rest.data() + 1, rest.data() + 3, byte, 16).ptr == rest.data() + 3) {
      at_ += 3;
      return static_cast<char>(byte);
    }
    if (rest.empty() || std::string_view("n\"\\").find(rest[0]) == std::string_view::npos) expected("one of \\n \\\" \\\\ \\x00");
    ++at_;
    return rest[0] == 'n' ? '\n' : rest[0];
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  Graph graph_;
  std::unordered_map<uint32_t, ValueId> values_;
  std::vector<std::pair<uint32_t, ValueId>> pending_;
};

}  // namespace

Graph parse(std::string_view text) { return Parser(text).run(); }

}  // namespace ltc
