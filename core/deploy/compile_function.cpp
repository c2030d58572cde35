#include "core/deploy/compile_function.h"

#include "core/compile/build_program.h"

namespace ltc::deploy {

std::shared_ptr<const Program> compile_function(Graph code, const CompileTarget& target, const std::string&) {
  return build_program(std::move(code), target).program;
}

}  // namespace ltc::deploy
