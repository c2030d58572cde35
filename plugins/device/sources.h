// Compiled sources of one device.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace ltc::device {

// The source lines that a compiler's log names: those whose numbers `place`, a regular expression, captures.
std::string quoted_lines(const std::string& log, const std::string& source, const char* place);

// A source is compiled once, whoever asks for it and however often. Any thread; two may compile at once.
template <typename Program>
class CompiledSources {
 public:
  using Ref = std::shared_ptr<const Program>;

  // `compile` makes it where nobody did yet; what it throws is not kept.
  Ref get(const std::string& source, const std::function<Ref()>& compile) {
    {
      const std::lock_guard guard(lock_);
      const auto found = compiled_.find(source);
      if (found != compiled_.end()) return found->second;
    }
    Ref program = compile();
    const std::lock_guard guard(lock_);
    return compiled_.emplace(source, std::move(program)).first->second;
  }

 private:
  std::mutex lock_;
  std::unordered_map<std::string, Ref> compiled_;  // by source
};

}  // namespace ltc::device
