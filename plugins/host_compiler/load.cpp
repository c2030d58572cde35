#include <llvm/ExecutionEngine/Orc/ExecutionUtils.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Support/MemoryBuffer.h>

#include <atomic>
#include <memory>
#include <string>

#include "host_compiler/sink.h"

namespace orc = llvm::orc;

struct ltc_hc_module {
  orc::JITDylib& functions;
};

namespace ltc::host_compiler {
namespace {

// One for all modules: each by itself would keep half a megabyte. Never destroyed, as kernels may run until the process ends.
llvm::Expected<orc::LLJIT*> linker() {
  static auto* const made = [] {
    initialize_target();
    return new llvm::Expected<std::unique_ptr<orc::LLJIT>>(orc::LLJITBuilder().create());
  }();
  if (*made) return (*made)->get();
  return llvm::createStringError("the linker of kernels cannot start");
}

llvm::Expected<std::unique_ptr<ltc_hc_module>> load(llvm::StringRef object) {
  static std::atomic<uint64_t> count = 0;
  auto jit = linker();
  if (!jit) return jit.takeError();
  auto functions = (*jit)->createJITDylib("kernels " + std::to_string(count++));
  if (!functions) return functions.takeError();
  auto module = std::make_unique<ltc_hc_module>(ltc_hc_module{*functions});
  auto process = orc::DynamicLibrarySearchGenerator::GetForCurrentProcess((*jit)->getDataLayout().getGlobalPrefix());
  if (!process) return process.takeError();
  functions->addGenerator(std::move(*process));
  if (auto error = (*jit)->addObjectFile(*functions, llvm::MemoryBuffer::getMemBufferCopy(object))) return error;
  return module;
}

}  // namespace
}  // namespace ltc::host_compiler

ltc_hc_module* ltc_hc_load(const char* object, size_t size, ltc_hc_sink diagnostics) {
  auto module = ltc::host_compiler::load({object, size});
  if (module) return module->release();
  ltc::host_compiler::write(diagnostics, llvm::toString(module.takeError()));
  return nullptr;
}

void* ltc_hc_find(ltc_hc_module* module, const char* name) {
  auto jit = ltc::host_compiler::linker();
  if (!jit) {
    llvm::consumeError(jit.takeError());
    return nullptr;
  }
  auto address = (*jit)->lookup(module->functions, name);
  if (address) return address->toPtr<void*>();
  llvm::consumeError(address.takeError());
  return nullptr;
}

void ltc_hc_unload(ltc_hc_module* module) {
  llvm::consumeError(module->functions.getExecutionSession().removeJITDylib(module->functions));
  delete module;
}
