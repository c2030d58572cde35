// Strings of the C ABI: names of ops and attributes as a plugin compares them, texts of a plugin as the host takes them.
// Input: parts that end in a zero byte: the name of an op, then names of attributes.
#include "core/base/utf8.h"
#include "core/host/call.h"
#include "core/host/sized.h"
#include "fuzz/target.h"
#include "ltc/entry.h"
#include "ltc/opset.h"

namespace ltc::fuzz {
namespace {

std::vector<std::string> split(std::string_view input) {
  std::vector<std::string> parts;
  while (!input.empty()) {
    const std::string_view part = input.substr(0, input.find('\0'));
    input.remove_prefix(std::min(input.size(), part.size() + 1));
    parts.emplace_back(part);
  }
  return parts;
}

// Without a zero behind it, as the ABI allows.
ltc_string view(const std::vector<char>& text) { return {text.data(), text.size()}; }

void compare_names(const std::vector<std::vector<char>>& texts) {
  for (const auto& a : texts) {
    for (const auto& b : texts) {
      const std::string whole = std::string(b.begin(), b.end()) + ".count";
      require(ltc_is_name(view(a), b.data(), b.size(), "") == (a == b), "a name is itself alone");
      require(ltc_is_name({whole.data(), whole.size()}, b.data(), b.size(), ".count"), "a name with its suffix is known");
    }
  }
}

void match_node(const std::vector<std::vector<char>>& texts) {
  const int64_t count = 1;
  const uint32_t inputs[] = {0, LTC_NONE, 1};
  std::vector<ltc_attr> attrs;
  std::vector<const ltc_attr*> pointers;
  for (size_t i = 1; i < texts.size(); ++i) {
    auto attr = host::sized<ltc_attr>();
    attr.name = view(texts[i]);
    attr.kind = LTC_ATTR_INT;
    attr.count = 1;
    attr.value.ints = &count;
    attrs.push_back(attr);
  }
  for (const ltc_attr& attr : attrs) pointers.push_back(&attr);
  auto node = host::sized<ltc_node>();
  node.name = view(texts[0]);
  node.inputs = inputs;
  node.attrs = pointers.data();
  node.attr_count = pointers.size();
  for (node.input_count = 0; node.input_count <= std::size(inputs); ++node.input_count) {
    for (unsigned op = 0; op < 600; ++op) ltc_node_matches(&node, ltc_op_operands(op));
  }
}

}  // namespace

bool accept(std::string_view input) {
  std::vector<std::vector<char>> texts;
  for (const std::string& part : split(input.substr(0, 1024))) texts.emplace_back(part.begin(), part.end());
  if (texts.empty() || texts.size() > 16) return false;
  compare_names(texts);
  match_node(texts);
  for (const auto& text : texts) {
    const std::string copied = host::copied(view(text));
    require(valid_utf8(copied) == copied, "a text is UTF-8");
  }
  const std::string message = message_text(input);
  require(valid_utf8(message) == message, "a message is UTF-8");
  return true;
}

std::vector<std::string> sound_inputs() {
  using namespace std::string_literals;
  return {"aten::max.dim\0dim\0keepdim"s, "aten::cat\0tensors.count\0dim"s, "\xf0\x9f\x98\x80\0\xc3\x28\0\xed\xa0\x80"s};
}

}  // namespace ltc::fuzz
