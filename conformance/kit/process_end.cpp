#include "conformance/kit/process_end.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <memory>

#include "conformance/kit/fixture.h"
#include "conformance/kit/load_bytes.h"

namespace ltc::conformance {
namespace {

// All that a program may hold at its end.
struct Everything {
  Instance instance;
  Device device{instance};
  Executable executable;
  Buffer input;
  Device::Run run;

  Everything() {
    executable = device.build(kNeg4);
    input = device.upload(Array::floats({1, 2, 3, 4}));
    run = device.submit({executable, {input.get()}});
  }
};
Everything* everything = nullptr;

bool child_ends() {
  const pid_t pid = ::fork();
  if (pid == 0) std::exit(0);
  int status = 0;
  return pid > 0 && ::waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool loads_and_runs(const std::string& bytes) {
  Instance instance;
  Device device(instance);
  const LoadBytes data(bytes);
  const ltc_load_args args = data.args();
  ltc_executable* made = nullptr;
  const auto load = [&] { return device.api().executable_load(device.get(), &args, &made); };
  if (const Failure failure = Instance::asked("executable_load", load)) {
    std::cerr << "executable_load failed: " << failure << "\n";
    return false;
  }
  const Executable add(device, made);
  const Buffer a = device.upload(Array::floats({1, 2, 3, 4})), b = device.upload(Array::floats({10, 20, 30, 40}));
  const auto outputs = device.run({add, {a.get(), b.get()}});
  return device.download(outputs[0], DType::kF32, {4}).values<float>() == std::vector<float>{11, 22, 33, 44};
}

// A file without a name that holds the text, to be read from its beginning.
int file_of(const std::string& text) {
  std::FILE* file = std::tmpfile();
  if (!file || std::fwrite(text.data(), 1, text.size(), file) != text.size()) fail(Code::kResourceExhausted, "no temporary file");
  std::rewind(file);
  return ::fileno(file);
}

}  // namespace

int end_process(const std::string& how) {
  if (how == "load") return loads_and_runs({std::istreambuf_iterator<char>(std::cin), {}}) ? 0 : 1;
  everything = new Everything;
  if (how == "pending") {
    for (int i = 0; i < 200; ++i)
      (void)everything->device.submit({everything->executable, {everything->input.get()}}).outputs[0].release();
    return 0;
  }
  if (how == "fork" && !child_ends()) return 1;
  if (how == "atexit" || how == "fork") std::atexit([] { delete everything; });
  return 0;
}

void expect_end(const char* how, const std::string& input) {
  const int file = file_of(input);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(file, STDIN_FILENO);
    ::execl("/proc/self/exe", "ltc-conformance", "--end", how, "--backend", backend_text().c_str(), nullptr);
    ::_exit(127);
  }
  ::close(file);
  ASSERT_GT(pid, 0);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
      << "the process ended with " << (WIFEXITED(status) ? "exit code " : "signal ")
      << (WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

}  // namespace ltc::conformance
