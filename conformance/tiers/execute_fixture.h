// The fixture of the execute tier's files.
#pragma once

#include <string>
#include <vector>

#include "conformance/kit/fixture.h"
#include "core/compile/lowering/abi_graph.h"
#include "core/host/sized.h"
#include "core/ir/text.h"

namespace ltc::conformance {

using Floats = std::vector<float>;

class Execute : public ComputeTest {
 protected:
  Buffer four() { return device().upload(Array::floats({1, 2, 3, 4})); }
  Floats read(const Buffer& buffer) { return floats(buffer, {4}); }

  std::vector<uint32_t> claims(const std::string& text) {
    const Graph graph = parse(text);
    const AbiGraph abi(graph);
    std::vector<uint32_t> clusters;
    EXPECT_OK(device().claims(*abi.get(), clusters));
    return clusters;
  }
  std::string program_text(const Program& program) {
    std::string result;
    const ltc_sink sink{&result, [](void* to, const void* data, size_t size) {
                          static_cast<std::string*>(to)->append(static_cast<const char*>(data), size);
                          return true;
                        }};
    EXPECT_OK(Instance::asked("program_text", [&] { return api().program_text(program.get(), &sink); }));
    return result;
  }
};

}  // namespace ltc::conformance
