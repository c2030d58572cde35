// clang's code generator knows the passes of Polly, an extension that some distributions build in; kernels do without.
#include <llvm/Passes/PassPlugin.h>

llvm::PassPluginLibraryInfo getPollyPluginInfo();
llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "no polly", "0", [](llvm::PassBuilder&) {}};
}
