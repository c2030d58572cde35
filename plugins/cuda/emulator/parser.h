// The parts of the reader of PTX: words, declarations, and bodies of functions.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "cuda/emulator/ptx.h"

namespace ltc::emulator {

[[noreturn]] void refuse(const std::string& what);

class Words {
 public:
  explicit Words(const std::string& text);

  const std::string& peek() const { return words_[at_]; }
  std::string next() { return at_ + 1 < words_.size() ? words_[at_++] : words_[at_]; }
  bool take(const std::string& word) { return words_[at_] == word && ++at_; }
  void expect(const std::string& word);
  uint64_t number();
  // Whether the word behind the next one is this.
  bool follows(const std::string& word) const { return at_ + 1 < words_.size() && words_[at_ + 1] == word; }

 private:
  std::vector<std::string> words_;  // the last is empty
  size_t at_ = 0;
};

bool read_number(const std::string& word, uint64_t& value);
uint32_t bytes_of(const std::string& type);

// Names of the module with their addresses.
struct Names {
  std::map<std::string, uint64_t> globals;
};

struct Declaration {
  std::string name;
  uint32_t align = 1, bytes = 0, element = 1;
};
// ".align 8 .b8 name[16]", behind the word of its space.
Declaration read_declaration(Words& words);
// The place of the next variable among `total` bytes, which grow by it.
uint32_t place_behind(uint32_t& total, uint32_t bytes, uint32_t align);

// From "{" to its "}".
void read_body(Words& words, const Names& names, Module& module, Function& function);

}  // namespace ltc::emulator
