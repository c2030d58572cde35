// The checks that a plugin must pass to conform, one list per minor of the ABI: must_pass/1.0.txt. A line is
//
//   NAME                            every plugin must pass it
//   NAME needs events, opens        every plugin that has these capabilities must; others may skip it
//   # a comment
//
// No vendor's list of expected failures excuses a failure of these checks; a waiver does. Each check below the ops is in one of
// the lists.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "conformance/result.h"

namespace ltc::conformance {

class MustPass {
 public:
  // The lists of this ABI's minors up to its own, as built in. Throws ltc::Error for a line that is none.
  static MustPass built_in();
  static MustPass parse(const std::string& text);
  // Whether a list is to have the check.
  static bool concerns(const std::string& name);

  // Sets the outcome that counts.
  void judge(Result& result) const;

  // For making the list of a new minor: adds the capability for which a plugin skipped the check.
  void learn(const Result& result);
  std::string text(const std::vector<std::string>& names) const;

 private:
  std::map<std::string, std::set<std::string>> needs_;  // by check
};

}  // namespace ltc::conformance
