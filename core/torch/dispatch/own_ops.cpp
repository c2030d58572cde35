#include "core/torch/dispatch/own_ops.h"

#include <string_view>
#include <unordered_map>

namespace ltc {
namespace {

struct OwnOps {
  std::vector<c10::OperatorHandle> all;
  std::unordered_map<std::string_view, std::vector<c10::OperatorHandle>> by_base;
};

const OwnOps& listed() {
  static const auto& ops = *[] {
    auto* const result = new OwnOps();
    auto& dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
      const auto op = name.name.starts_with("aten::") ? dispatcher.findSchema(name) : std::nullopt;
      if (!op) continue;
      result->all.push_back(*op);
      result->by_base[op->operator_name().name].push_back(*op);
    }
    return result;
  }();
  return ops;
}

}  // namespace

const std::vector<c10::OperatorHandle>& own_ops() { return listed().all; }

std::vector<c10::OperatorHandle> overloads_of(const std::string& base) {
  if (const auto own = listed().by_base.find(base); own != listed().by_base.end()) return own->second;
  auto& dispatcher = c10::Dispatcher::singleton();
  std::vector<c10::OperatorHandle> overloads;
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = name.name == base ? dispatcher.findSchema(name) : std::nullopt;
    if (op) overloads.push_back(*op);
  }
  return overloads;
}

}  // namespace ltc
