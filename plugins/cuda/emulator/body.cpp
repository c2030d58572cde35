// Bodies of functions: registers, labels, instructions.
#include "cuda/emulator/parser.h"
#include "cuda/emulator/table.h"

namespace ltc::emulator {
namespace {

constexpr uint64_t kPoison = ~uint64_t{0};

const std::map<std::string, SpecialSlot>& specials() {
  static const auto& names = *new std::map<std::string, SpecialSlot>{{"%tid.x", kTidX},
                                                                     {"%tid.y", kTidY},
                                                                     {"%tid.z", kTidZ},
                                                                     {"%ntid.x", kNtidX},
                                                                     {"%ntid.y", kNtidY},
                                                                     {"%ntid.z", kNtidZ},
                                                                     {"%ctaid.x", kCtaidX},
                                                                     {"%ctaid.y", kCtaidY},
                                                                     {"%ctaid.z", kCtaidZ},
                                                                     {"%nctaid.x", kNctaidX},
                                                                     {"%nctaid.y", kNctaidY},
                                                                     {"%nctaid.z", kNctaidZ},
                                                                     {"%laneid", kLaneId},
                                                                     {"%warpid", kWarpId},
                                                                     {"%lanemask_eq", kLanesEqual},
                                                                     {"%lanemask_lt", kLanesBelow},
                                                                     {"%lanemask_le", kLanesUpTo},
                                                                     {"%lanemask_gt", kLanesAbove},
                                                                     {"%lanemask_ge", kLanesFrom}};
  return names;
}

class Body {
 public:
  Body(Words& words, const Names& names, Module& module, Function& function)
      : words_(words), names_(names), module_(module), function_(function) {
    function_.registers.assign(kSpecialSlots, 0);
  }

  void read() {
    words_.expect("{");
    scopes_.emplace_back();
    while (!scopes_.empty()) statement();
    function_.code.push_back(made("ret", 0));
    for (const auto& [at, label] : jumps_) {
      const auto it = labels_.find(label);
      if (it == labels_.end()) refuse(function_.name + " jumps to " + label + ", which is not there");
      function_.code[at].target = it->second;
    }
  }

 private:
  struct Scope {
    std::map<std::string, uint16_t> registers;
    std::map<std::string, Param> params;
    std::map<std::string, uint64_t> places;
  };

  void statement() {
    if (words_.peek().empty()) refuse("the text ends in " + function_.name);
    if (words_.take("{")) return static_cast<void>(scopes_.emplace_back());
    if (words_.take("}")) return scopes_.pop_back();
    if (words_.take(";")) return;
    if (words_.follows(":")) {
      labels_[words_.next()] = static_cast<uint32_t>(function_.code.size());
      return words_.expect(":");
    }
    if (words_.peek()[0] == '.') return directive();
    instruction();
  }

  void directive() {
    const std::string word = words_.next();
    if (word == ".reg") {
      words_.next();
      do declare_registers();
      while (words_.take(","));
    } else if (word == ".param" || word == ".local" || word == ".shared") {
      const Declaration made = read_declaration(words_);
      if (word == ".param") {
        scopes_.back().params[made.name] = {made.name, place_behind(function_.param_bytes, made.bytes, made.align), made.bytes};
      } else if (word == ".local") {
        scopes_.back().places[made.name] = place_behind(function_.local_bytes, made.bytes, std::max(made.align, 16U));
      } else {
        scopes_.back().places[made.name] = place_behind(module_.shared_bytes, made.bytes, std::max(made.align, 16U));
      }
    } else if (word == ".pragma") {
      words_.next();
    } else {
      refuse("the directive " + word + " in " + function_.name + " is not known");
    }
    words_.expect(";");
  }

  void declare_registers() {
    const std::string name = words_.next();
    if (!words_.take("<")) {
      scopes_.back().registers[name] = slot(kPoison);
      return;
    }
    const uint64_t count = words_.number();
    for (uint64_t i = 0; i < count; ++i) scopes_.back().registers[name + std::to_string(i)] = slot(kPoison);
    words_.expect(">");
  }

  uint16_t slot(uint64_t initial) {
    if (function_.registers.size() > UINT16_MAX) refuse(function_.name + " has too many registers");
    function_.registers.push_back(initial);
    return static_cast<uint16_t>(function_.registers.size() - 1);
  }
  uint16_t constant(uint64_t value) {
    const auto [it, is_new] = constants_.try_emplace(value, 0);
    if (is_new) it->second = slot(value);
    return it->second;
  }

  // The register of this name, or the slot of a constant that is its address.
  uint16_t operand(const std::string& word) {
    if (word == "_") return kSink;
    uint64_t value = 0;
    if (read_number(word, value)) return constant(value);
    if (const auto it = specials().find(word); it != specials().end()) return it->second;
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const auto it = scope->registers.find(word); it != scope->registers.end()) return it->second;
      if (const auto it = scope->places.find(word); it != scope->places.end()) return constant(it->second);
      if (const auto it = scope->params.find(word); it != scope->params.end()) return constant(it->second.offset);
    }
    for (const auto& formal : {function_.params, function_.results}) {
      for (const Param& param : formal) {
        if (param.name == word) return constant(param.offset);
      }
    }
    if (const auto it = names_.globals.find(word); it != names_.globals.end()) return constant(it->second);
    refuse("the name " + word + " in " + function_.name + " is not known");
  }

  Instruction made(const std::string& name, int operands) {
    const auto* row = Table::instance().find(name);
    if (!row) refuse("the instruction " + name + " in " + function_.name + " is not known to the emulator");
    if (operands < row->second.fewest || operands > row->second.most) {
      refuse("the instruction " + name + " in " + function_.name + " has " + std::to_string(operands) + " operands");
    }
    Instruction in;
    in.handler = row->second.handler;
    in.name = &row->first;
    return in;
  }

  void instruction() {
    uint16_t guard = kTrue;
    bool negated = false;
    if (words_.take("@")) {
      negated = words_.take("!");
      guard = operand(words_.next());
    }
    const std::string name = words_.next();
    slots_.clear();
    offset_ = 0;
    pair_ = false;
    takes_apart_ = words_.peek() == "{";
    Instruction in;
    if (name == "bra" || name == "bra.uni") {
      in = made(name, 0);
      jumps_.emplace_back(function_.code.size(), words_.next());
    } else if (name == "call" || name == "call.uni") {
      in = made(name, 0);
      in.target = call();
    } else {
      if (words_.peek() != ";") operands();
      in = made(with_direction(name), static_cast<int>(slots_.size()));
    }
    words_.expect(";");
    in.guard = guard;
    in.negated = negated;
    in.offset = offset_;
    in.pair = pair_;
    std::copy(slots_.begin(), slots_.end(), in.slots);
    function_.code.push_back(in);
  }

  // A mov that puts a register together from several, or takes it apart, has rows of its own.
  std::string with_direction(const std::string& name) const {
    if (!name.starts_with("mov.b") || slots_.size() < 3) return name;
    return (takes_apart_ ? "unpack" : "pack") + name.substr(3);
  }

  void operands() {
    do {
      if (words_.take("{")) {
        do add(words_.next());
        while (words_.take(","));
        words_.expect("}");
      } else if (words_.take("[")) {
        add(words_.next());
        address_offset();
        words_.expect("]");
      } else if (words_.take("!")) {
        refuse("a negated operand in " + function_.name + " is not known");
      } else {
        add(words_.next());
        if (words_.take("|")) {
          add(words_.next());
          pair_ = true;
        }
      }
    } while (words_.take(","));
  }

  void add(const std::string& word) {
    if (slots_.size() == Instruction::kMostSlots) refuse("an instruction of " + function_.name + " has too many operands");
    slots_.push_back(operand(word));
  }

  // "+4", "+-4" or "-4".
  void address_offset() {
    if (words_.take("+") || words_.peek()[0] == '-') offset_ += static_cast<int32_t>(words_.number());
  }

  // "(results), name, (arguments)": both lists may be missing.
  uint32_t call() {
    Call call;
    if (words_.peek() == "(") {
      call.results = call_params();
      words_.expect(",");
    }
    call.name = words_.next();
    if (words_.take(",")) call.arguments = call_params();
    function_.calls.push_back(std::move(call));
    return static_cast<uint32_t>(function_.calls.size() - 1);
  }

  std::vector<Param> call_params() {
    std::vector<Param> params;
    words_.expect("(");
    while (!words_.take(")")) {
      words_.take(",");
      const std::string name = words_.next();
      const Param* found = nullptr;
      for (const Scope& scope : scopes_) {
        if (const auto it = scope.params.find(name); it != scope.params.end()) found = &it->second;
      }
      if (!found) refuse("the parameter " + name + " of a call in " + function_.name + " is not known");
      params.push_back(*found);
    }
    return params;
  }

  Words& words_;
  const Names& names_;
  Module& module_;
  Function& function_;
  std::vector<Scope> scopes_;
  std::map<uint64_t, uint16_t> constants_;
  std::map<std::string, uint32_t> labels_;
  std::vector<std::pair<size_t, std::string>> jumps_;
  std::vector<uint16_t> slots_;
  int32_t offset_ = 0;
  bool takes_apart_ = false, pair_ = false;
};

}  // namespace

void read_body(Words& words, const Names& names, Module& module, Function& function) {
  Body(words, names, module, function).read();
}

}  // namespace ltc::emulator
