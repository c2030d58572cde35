// The table of instructions: the name with its suffixes, how many operands it takes, and the function that runs it.
#pragma once
#include <string>
#include <unordered_map>

#include "cuda/emulator/ptx.h"

namespace ltc::emulator {

struct Row {
  Handler handler = nullptr;
  int fewest = 0, most = 0;  // operands; the elements of a vector count singly, and so do both results of "a|b"
};

class Table {
 public:
  static const Table& instance();

  // Null: not known.
  const std::pair<const std::string, Row>* find(const std::string& name) const {
    const auto it = rows_.find(name);
    return it == rows_.end() ? nullptr : &*it;
  }
  size_t size() const { return rows_.size(); }

  void add(const std::string& name, int operands, Handler handler) { add(name, operands, operands, handler); }
  void add(const std::string& name, int fewest, int most, Handler handler) { rows_[name] = {handler, fewest, most}; }

 private:
  Table();
  std::unordered_map<std::string, Row> rows_;
};

// Rows, by the files that define them.
void add_integers(Table& table);
void add_bits(Table& table);
void add_floats(Table& table);
void add_functions(Table& table);
void add_halves(Table& table);
void add_comparisons(Table& table);
void add_conversions(Table& table);
void add_accesses(Table& table);
void add_atomics(Table& table);
void add_control(Table& table);
void add_warps(Table& table);
void add_tensor_cores(Table& table);

}  // namespace ltc::emulator
