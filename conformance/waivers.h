// Failures that are excused until a date. A line is
//
//   NAME YYYY-MM-DD reason        the check of that name may fail up to that day, UTC
//   # a comment
//
// Past the day the check has failed. A check that passes although it is waived is a failure: the waiver is out of date.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "conformance/result.h"

namespace ltc::conformance {

using Day = std::chrono::year_month_day;

class Waivers {
 public:
  Waivers() = default;
  // `names`: all checks there are. Throws ltc::Error(kInvalidArgument) with the line for a date that is none, a missing reason,
  // an unknown name, or a name that comes twice; kNotFound for a file that cannot be read.
  static Waivers read(const std::string& path, const std::vector<std::string>& names);
  static Day today();

  // Sets the outcome that counts. `ran`: the outcome before lists were asked.
  void judge(Result& result, Outcome ran, Day day) const;

 private:
  struct Line {
    std::string name, date, reason;
    Day last;
    int number;
  };
  std::vector<Line> lines_;
};

}  // namespace ltc::conformance
