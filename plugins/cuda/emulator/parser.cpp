#include "cuda/emulator/parser.h"

#include <cctype>
#include <charconv>
#include <cstring>

namespace ltc::emulator {

// ---- words

Words::Words(const std::string& text) {
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || std::strchr("_$.%", c); };
  for (size_t i = 0; i < text.size() && text[i];) {
    const char c = text[i];
    if (std::isspace(static_cast<unsigned char>(c))) {
      ++i;
    } else if (text.compare(i, 2, "//") == 0) {
      i = std::min(text.find('\n', i), text.size());
    } else if (text.compare(i, 2, "/*") == 0) {
      i = std::min(text.find("*/", i), text.size() - 2) + 2;
    } else if (c == '"') {
      const size_t end = std::min(text.find('"', i + 1), text.size() - 1);
      words_.push_back(text.substr(i, end - i + 1));
      i = end + 1;
    } else {
      size_t end = i + 1;
      if (is_word(c) || (c == '-' && end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])))) {
        while (end < text.size() && (is_word(text[end]) || (text[end] == ':' && text.compare(end, 2, "::") == 0))) {
          end += text[end] == ':' ? 2 : 1;
        }
      }
      words_.push_back(text.substr(i, end - i));
      i = end;
    }
  }
  words_.emplace_back();
}

void Words::expect(const std::string& word) {
  if (next() != word) refuse("'" + word + "' is expected where '" + words_[at_ - 1] + "' is");
}

uint64_t Words::number() {
  uint64_t value = 0;
  const std::string word = next();
  if (!read_number(word, value)) refuse("a number is expected where '" + word + "' is");
  return value;
}

void refuse(const std::string& what) { throw Fault{CUDA_ERROR_INVALID_PTX, what}; }

bool read_number(const std::string& word, uint64_t& value) {
  const char *begin = word.data(), *end = begin + word.size();
  const bool negative = begin < end && *begin == '-';
  begin += negative;
  if (begin == end || !std::isdigit(static_cast<unsigned char>(*begin))) return false;
  int base = 10;
  if (end - begin > 2 && *begin == '0' && std::strchr("xXfFdD", begin[1])) {  // 0f and 0d: the bits of a float
    begin += 2;
    base = 16;
  }
  if (end[-1] == 'U') --end;
  const auto [rest, error] = std::from_chars(begin, end, value, base);
  if (negative) value = 0 - value;
  return rest == end && error == std::errc();
}

uint32_t bytes_of(const std::string& type) {
  if (type == ".pred") return 1;
  const std::string bits = type.substr(std::min<size_t>(2, type.size()));
  uint64_t value = 0;
  if (!read_number(bits, value) || value % 8 != 0) refuse("the type " + type + " is not known");
  return static_cast<uint32_t>(value / 8);
}

// ---- declarations

Declaration read_declaration(Words& words) {
  Declaration made;
  while (words.peek() == ".align" || words.peek() == ".ptr" || words.peek() == ".global" || words.peek() == ".shared") {
    if (words.next() == ".align") made.align = static_cast<uint32_t>(words.number());
  }
  made.element = made.bytes = bytes_of(words.next());
  made.align = std::max(made.align, made.element);
  made.name = words.next();
  while (words.take("[")) {
    made.bytes *= words.peek() == "]" ? 0 : static_cast<uint32_t>(words.number());
    words.expect("]");
  }
  return made;
}

uint32_t place_behind(uint32_t& total, uint32_t bytes, uint32_t align) {
  const uint32_t at = (total + align - 1) / align * align;
  total = at + bytes;
  return at;
}

// ---- a module

namespace {

class Reader {
 public:
  Reader(const std::string& text, Placement place, void* context) : words_(text), place_(place), context_(context) {}

  std::unique_ptr<Module> read() {
    while (!words_.peek().empty()) item();
    link();
    return std::move(module_);
  }

 private:
  void item() {
    const std::string word = words_.next();
    if (word == ".version" || word == ".address_size") {
      words_.next();
    } else if (word == ".target") {
      do words_.next();
      while (words_.take(","));
    } else if (word == ".visible" || word == ".weak" || word == ".extern" || word == ".common") {
    } else if (word == ".entry" || word == ".func") {
      function(word == ".entry");
    } else if (word == ".global" || word == ".const") {
      variable();
    } else if (word == ".shared") {
      shared();
    } else {
      refuse("the directive " + word + " is not known");
    }
  }

  void variable() {
    const Declaration made = read_declaration(words_);
    Variable& variable = module_->variables[made.name];
    variable = {made.name, std::vector<std::byte>(made.bytes), 0};
    if (words_.take("=")) {
      const bool list = words_.take("{");
      size_t at = 0;
      do {
        const uint64_t value = words_.number();
        if (at + made.element > made.bytes) refuse("the variable " + made.name + " has more values than it has room");
        std::memcpy(variable.bytes.data() + at, &value, made.element);
        at += made.element;
      } while (words_.take(","));
      if (list) words_.expect("}");
    }
    words_.expect(";");
    variable.address = place_(variable, context_);
    names_.globals[made.name] = variable.address;
  }

  void shared() {
    const Declaration made = read_declaration(words_);
    names_.globals[made.name] = place_behind(module_->shared_bytes, made.bytes, std::max(made.align, 16U));
    words_.expect(";");
  }

  std::vector<Param> params(Function& function) {
    std::vector<Param> made;
    if (!words_.take("(")) return made;
    while (!words_.take(")")) {
      words_.take(",");
      if (words_.take(".reg")) refuse("parameters in registers are not known, as of " + function.name);
      words_.expect(".param");
      const Declaration param = read_declaration(words_);
      made.push_back({param.name, place_behind(function.param_bytes, param.bytes, param.align), param.bytes});
    }
    return made;
  }

  // Limits of launches, up to the body.
  void limits(Function& function) {
    while (words_.peek() != "{" && words_.peek() != ";") {
      if (words_.next() != ".maxntid") continue;
      function.most_threads = words_.number();
      while (words_.take(",")) function.most_threads *= words_.number();
    }
  }

  void function(bool is_entry) {
    auto made = std::make_unique<Function>();
    made->is_entry = is_entry;
    made->results = params(*made);
    made->name = words_.next();
    made->params = params(*made);
    limits(*made);
    std::unique_ptr<Function>& known = module_->functions[made->name];
    if (!known) known = std::make_unique<Function>();
    if (known->has_body) refuse("the function " + made->name + " is there twice");
    *known = std::move(*made);
    if (words_.take(";")) return;
    known->has_body = true;
    read_body(words_, names_, *module_, *known);
  }

  void link() {
    for (auto& [name, function] : module_->functions) {
      for (Call& call : function->calls) {
        const auto it = module_->functions.find(call.name);
        if (it == module_->functions.end() || !it->second->has_body)
          refuse(name + " calls " + call.name + ", which is not there");
        call.callee = it->second.get();
        if (call.arguments.size() != call.callee->params.size() || call.results.size() != call.callee->results.size()) {
          refuse(name + " calls " + call.name + " with another number of parameters than it has");
        }
      }
    }
  }

  Words words_;
  const Placement place_;
  void* const context_;
  Names names_;
  std::unique_ptr<Module> module_ = std::make_unique<Module>();
};

}  // namespace

std::unique_ptr<Module> parse(const std::string& text, Placement place, void* context) {
  return Reader(text, place, context).read();
}

}  // namespace ltc::emulator
