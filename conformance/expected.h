// A vendor's list of checks that do not pass, with reasons. A line is
//
//   fails PATTERN: reason           each check that it matches must fail
//   unsupported PATTERN: reason     each must be answered with "unsupported", or fail because the op is not claimed
//   # a comment
//
// '*' in a pattern stands for any characters. A check that passes although the list says otherwise is a failure: the list is out
// of date.
#pragma once

#include <string>
#include <vector>

#include "conformance/result.h"

namespace ltc::conformance {

class ExpectedList {
 public:
  ExpectedList() = default;
  // `names`: all checks there are. Throws ltc::Error(kInvalidArgument) with the line for a syntax error, a missing reason, or a
  // pattern that matches no check; kNotFound for a file that cannot be read.
  static ExpectedList read(const std::string& path, const std::vector<std::string>& names);

  // Sets the outcome that counts.
  void judge(Result& result) const;

 private:
  struct Line {
    Outcome expected;
    std::string pattern, reason;
    int number;
  };
  std::vector<Line> lines_;
};

}  // namespace ltc::conformance
