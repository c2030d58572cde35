// The saved executables of the plugin pjrt, as far as the plugin itself reads them. The rest goes to the vendor's library, which
// is no part of this: it may end the process for damaged bytes. Input: the fields behind the head.
#include "fuzz/sealed.h"
#include "pjrt/objects.h"

namespace ltc::fuzz {
namespace {

std::string saved() {
  const pjrt::Type vector{LTC_F32, {2}};
  pjrt::Signature signature;
  signature.inputs = {vector, vector};
  signature.becomes = {0, LTC_NONE};
  signature.scalar_count = 1;
  signature.outputs = {vector};
  signature.checks = {{3, 0, 2}};
  signature.good_outputs = {1};
  return pjrt::write_executable(signature, "the library's bytes");
}

}  // namespace

bool accept(std::string_view input) {
  static const std::string model = saved();
  const std::string bytes = sealed(model, input);
  pjrt::Signature signature;
  std::string serialized;
  try {
    signature = pjrt::read_executable(bytes, serialized);
  } catch (const plugin::Failure&) {
    return false;
  }
  require(pjrt::write_executable(signature, serialized) == bytes, "what is read and written again has the same bytes");
  require(signature.becomes.size() == signature.inputs.size(), "each input has its output or none");
  return true;
}

std::vector<std::string> sound_inputs() { return {saved().substr(kHeadBytes)}; }

}  // namespace ltc::fuzz
