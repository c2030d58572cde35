#include "conformance/kit/process_end.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "conformance/kit/fixture.h"

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

}  // namespace

int end_process(const std::string& how) {
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

}  // namespace ltc::conformance
