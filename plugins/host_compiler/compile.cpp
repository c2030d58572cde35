#include <clang/Basic/DiagnosticOptions.h>
#include <clang/CodeGen/CodeGenAction.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <clang/Lex/PreprocessorOptions.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "host_compiler/sink.h"

namespace ltc::host_compiler {
namespace {

constexpr const char* kFile = "kernel.cpp";

// No contraction of a * b + c: results are those of other compilers of the same text.
constexpr const char* kOptions[] = {"-emit-llvm-only",
                                    "-disable-llvm-passes",
                                    "-disable-llvm-verifier",
                                    "-discard-value-names",
                                    "-x",
                                    "c++",
                                    "-std=c++17",
                                    "-O2",
                                    "-disable-lifetime-markers",
                                    "-relaxed-aliasing",
                                    "-ffp-contract=off",
                                    "-mprefer-vector-width=512",
                                    "-mrelocation-model",
                                    "pic",
                                    "-pic-level",
                                    "2",
                                    "-fno-rtti",
                                    "-nostdsysteminc",
                                    "-nobuiltininc",
                                    "-w"};

// Kernels come in vectors: there is nothing for the rest of -O3 to do. The functions that they call are simplified once, not in
// each place. Where vectors are wider than registers they are passed in memory, which is gone only when the call is.
constexpr const char* kSimplify = "function(mem2reg,early-cse,instcombine<no-verify-fixpoint>)";
constexpr const char* kInline = "always-inline,function(sroa,early-cse)";

// Switches off the code generator's work on loops over scalars. Kernels are as fast without it and compile sooner.
constexpr const char* kCodeOptions[] = {"-disable-lsr", "-enable-misched=false", "-disable-machine-cse", "-disable-cgp"};

// An older LLVM does not know the newest machines' names, but their features.
std::vector<std::string> cpu_options(std::string_view cpu) {
  if (cpu != "native") return {"-target-cpu", std::string(cpu)};
  std::string name = llvm::sys::getHostCPUName().str();
  if (name == "generic") name = "x86-64";
  std::vector<std::string> options{"-target-cpu", name};
  for (const auto& feature : llvm::sys::getHostCPUFeatures()) {
    if (feature.first().starts_with("avx10")) continue;  // half of it alone is no machine of clang's
    options.push_back("-target-feature");
    options.push_back((feature.second ? "+" : "-") + feature.first().str());
  }
  return options;
}

std::vector<std::string> arguments_for(std::string_view cpu) {
  std::vector<std::string> arguments{"-triple", llvm::sys::getProcessTriple()};
  arguments.insert(arguments.end(), std::begin(kOptions), std::end(kOptions));
  for (std::string& option : cpu_options(cpu)) arguments.push_back(std::move(option));
  arguments.push_back(kFile);
  return arguments;
}

std::unique_ptr<llvm::Module> parse(const char* source, const char* cpu, llvm::LLVMContext& context, llvm::raw_ostream& log) {
  llvm::IntrusiveRefCntPtr<clang::DiagnosticOptions> options(new clang::DiagnosticOptions());
  auto* const printer = new clang::TextDiagnosticPrinter(log, options.get());  // owned by the engine
  llvm::IntrusiveRefCntPtr<clang::DiagnosticsEngine> diagnostics(
      new clang::DiagnosticsEngine(new clang::DiagnosticIDs(), options, printer));
  const std::vector<std::string> arguments = arguments_for(cpu);
  std::vector<const char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(argument.c_str());
  auto invocation = std::make_shared<clang::CompilerInvocation>();
  if (!clang::CompilerInvocation::CreateFromArgs(*invocation, pointers, *diagnostics)) return nullptr;
  invocation->getPreprocessorOpts().addRemappedFile(kFile, llvm::MemoryBuffer::getMemBufferCopy(source, kFile).release());
  clang::CompilerInstance compiler;
  compiler.setInvocation(std::move(invocation));
  compiler.setDiagnostics(diagnostics.get());
  compiler.setVerboseOutputStream(log);
  clang::EmitLLVMOnlyAction action(&context);
  return compiler.ExecuteAction(action) ? action.takeModule() : nullptr;
}

// Instructions that all copies of a function may have together. To compile a copy of tanh takes as long as 20 simple operations,
// and to call it 1 % longer than to go through the copy.
constexpr size_t kInlined = 128;

void choose_inlined(llvm::Module& module) {
  for (llvm::Function& function : module) {
    if (!function.hasLocalLinkage()) continue;
    const bool few = function.hasOneUse() || function.getInstructionCount() * function.getNumUses() <= kInlined;
    function.addFnAttr(few ? llvm::Attribute::AlwaysInline : llvm::Attribute::NoInline);
  }
}

void optimize(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  const auto run = [&](const char* text) {
    llvm::ModulePassManager passes;
    llvm::cantFail(builder.parsePassPipeline(passes, text));
    passes.run(module, modules);
  };
  run(kSimplify);
  choose_inlined(module);
  modules.clear();
  run(kInline);
}

// One per thread and cpu: what it finds out about the machine takes as long as a small kernel. Null: `log` says why.
llvm::TargetMachine* machine_of(const llvm::Module& module, const std::string& cpu, llvm::raw_ostream& log) {
  thread_local std::map<std::string, std::unique_ptr<llvm::TargetMachine>> machines;
  std::unique_ptr<llvm::TargetMachine>& machine = machines[cpu];
  if (machine) return machine.get();
  std::string error;
  const llvm::Target* const target = llvm::TargetRegistry::lookupTarget(module.getTargetTriple(), error);
  // Functions name their processor and its features themselves.
  if (target) machine.reset(target->createTargetMachine(module.getTargetTriple(), "", "", {}, llvm::Reloc::PIC_));
  if (!machine) log << error;
  return machine.get();
}

bool compile(const char* source, const char* cpu, llvm::SmallVectorImpl<char>& object, llvm::raw_ostream& log) {
  llvm::LLVMContext context;
  const std::unique_ptr<llvm::Module> module = parse(source, cpu, context, log);
  llvm::TargetMachine* const machine = module ? machine_of(*module, cpu, log) : nullptr;
  if (!machine) return false;
  optimize(*module, *machine);
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager code;
  if (machine->addPassesToEmitFile(code, stream, nullptr, llvm::CodeGenFileType::ObjectFile)) return false;
  code.run(*module);
  return true;
}

}  // namespace

void initialize_target() {
  static const bool done = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
    std::vector<const char*> arguments{"kernels"};
    arguments.insert(arguments.end(), std::begin(kCodeOptions), std::end(kCodeOptions));
    llvm::cl::ParseCommandLineOptions(static_cast<int>(arguments.size()), arguments.data(), "", &llvm::nulls());
    return true;
  }();
  static_cast<void>(done);
}

}  // namespace ltc::host_compiler

void ltc_hc_describe(const char* cpu, ltc_hc_sink text) {
  std::string all = std::string("clang " LLVM_VERSION_STRING " ") + ltc::host_compiler::kSimplify + ltc::host_compiler::kInline;
  for (const char* const option : ltc::host_compiler::kCodeOptions) all += std::string(" ") + option;
  for (const std::string& argument : ltc::host_compiler::arguments_for(cpu)) all += " " + argument;
  ltc::host_compiler::write(text, all);
}

bool ltc_hc_compile(const char* source, const char* cpu, ltc_hc_sink object, ltc_hc_sink diagnostics) {
  ltc::host_compiler::initialize_target();
  llvm::SmallVector<char, 0> bytes;
  std::string log;
  llvm::raw_string_ostream stream(log);
  const bool compiled = ltc::host_compiler::compile(source, cpu, bytes, stream);
  if (compiled) {
    ltc::host_compiler::write(object, {bytes.data(), bytes.size()});
  } else {
    ltc::host_compiler::write(diagnostics, stream.str());
  }
  return compiled;
}
