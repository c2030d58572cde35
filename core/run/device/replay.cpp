#include "core/run/device/replay.h"

#include <cstring>

#include "core/ir/text.h"
#include "core/run/device/device_table.h"

namespace ltc {

std::string replay(std::string_view text, std::string_view bytes, uint32_t device) {
  const Graph graph = parse(text);
  size_t wanted = 0;
  for (const Param& param : graph.params) wanted += graph.type(param.value).size_bytes();
  if (wanted != bytes.size()) fail(Code::kInvalidArgument, "the graph's params have ", wanted, " bytes, not ", bytes.size());
  std::vector<HostValue> values;
  for (const Param& param : graph.params) {
    values.push_back(allocate_host_value(graph.types[param.value]));
    const size_t size = graph.type(param.value).size_bytes();
    std::memcpy(values.back().data.get(), bytes.data(), size);
    bytes.remove_prefix(size);
  }
  return DeviceTable::instance().get(device).queue().compare_with_cpu(graph, values);
}

}  // namespace ltc
