// The options of a plugin in C++: one table, from which they are checked, read and listed. Header only.
//
//   const ltc::plugin::OptionRow kOptions[] = {
//       {"kernels", "async", "async|sync|off", "when loops are compiled: beside the program, before a step, or never"}};
//   ...
//   ltc_plugin(const ltc_entry_args& args) : options(kOptions, args) {}    // throws std::invalid_argument: the entry's reason
//   ... options["kernels"] ...                                              // and options.list(*info) in describe
#pragma once
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "ltc/plugin.h"

namespace ltc::plugin {

struct OptionRow {
  const char* name;
  const char* standard;  // the value where it is not given
  const char* legal;     // the values, separated by '|'; one that ends in ":SEED" is followed by a number; "": any text
  const char* about;     // one line
};

// Immutable. Borrows the rows.
class Options {
 public:
  // Throws std::invalid_argument for an option that no row has, and for a value that is not legal; the message names those that
  // are.
  Options(std::span<const OptionRow> rows, const ltc_entry_args& args) : rows_(rows) {
    for (const OptionRow& row : rows) values_.emplace_back(row.standard);
    for (size_t i = 0; LTC_HAS(&args, ltc_entry_args, options) && i < args.option_count; ++i) {
      const ltc_option& option = *args.options[i];
      set({option.name.data, option.name.size}, {option.value.data, option.value.size});
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      infos_.push_back({LTC_SIZE_TO(ltc_option_info, about), text(rows[i].name), text(rows[i].standard), text(rows[i].about)});
    }
    for (const ltc_option_info& info : infos_) pointers_.push_back(&info);
  }
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  // The value of an option that a row has.
  const std::string& operator[](std::string_view name) const { return values_[index_of(name)]; }

  // Fills what describe says of options; borrows from this object.
  void list(ltc_plugin_info& info) const {
    info.option_count = pointers_.size();
    info.options = pointers_.data();
  }

 private:
  static ltc_string text(const char* literal) { return {literal, std::char_traits<char>::length(literal)}; }

  size_t index_of(std::string_view name) const {
    std::string known;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i].name == name) return i;
      known += (i ? ", " : "") + std::string(rows_[i].name);
    }
    throw std::invalid_argument("there is no option '" + std::string(name) + "'" +
                                (known.empty() ? ", nor any other" : "; there are: " + known));
  }

  static bool is_number(std::string_view text) { return !text.empty() && text.find_first_not_of("0123456789") == text.npos; }

  void set(std::string_view name, std::string_view value) {
    constexpr std::string_view kSeed = ":SEED";
    const size_t index = index_of(name);
    std::string_view legal = rows_[index].legal;
    std::string choices;
    bool is_legal = legal.empty();
    while (!legal.empty()) {
      const std::string_view one = legal.substr(0, legal.find('|'));
      legal.remove_prefix(std::min(legal.size(), one.size() + 1));
      const bool is_seeded = one.ends_with(kSeed);
      const std::string_view begin = one.substr(0, one.size() - (is_seeded ? kSeed.size() - 1 : 0));
      is_legal |= is_seeded ? value.starts_with(begin) && is_number(value.substr(begin.size())) : value == one;
      if (!one.empty()) choices += (choices.empty() ? "" : legal.empty() ? " or " : ", ") + std::string(one);
    }
    if (!is_legal) {
      throw std::invalid_argument(std::string(name) + " is '" + std::string(value) + "'; it may be " + choices);
    }
    values_[index] = value;
  }

  const std::span<const OptionRow> rows_;
  std::vector<std::string> values_;  // by row
  std::vector<ltc_option_info> infos_;
  std::vector<const ltc_option_info*> pointers_;
};

}  // namespace ltc::plugin
