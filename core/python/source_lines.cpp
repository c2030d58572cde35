#include "core/python/source_lines.h"

#include <Python.h>

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/function.h>

#include "core/base/env.h"
#include "core/python/frames.h"

namespace ltc {
namespace {

// The lines of this thread's last differentiable ops, by the sequence number that autograd gives their gradient nodes.
class ForwardLines {
 public:
  // The op that is being recorded now. Numbers given since the last one were for it, or for views just before it.
  void add(LocationId line) {
    const uint64_t next = at::sequence_number::peek();
    if (next == next_) [[likely]]
      return;
    if (next > next_ + kSize || next < next_) next_ = next - std::min(next, uint64_t{1});
    for (; next_ < next; ++next_) entries_[next_ % kSize] = {next_, line};
  }

  LocationId find(const torch::autograd::Node& node) const {
    if (node.thread_id() != at::RecordFunction::currentThreadId()) return kNoLocation;
    const Entry& entry = entries_[node.sequence_nr() % kSize];
    return entry.number == node.sequence_nr() ? entry.line : kNoLocation;
  }

 private:
  static constexpr size_t kSize = 1 << 13;  // 128 KB
  struct Entry {
    uint64_t number;
    LocationId line;
  };
  uint64_t next_ = 0;
  std::vector<Entry> entries_ = std::vector<Entry>(kSize, {UINT64_MAX, kNoLocation});
};

LTC_THREAD_LOCAL ForwardLines* t_forward = nullptr;

ForwardLines& forward_lines() {
  if (t_forward) [[likely]]
    return *t_forward;
  thread_local ForwardLines lines;
  return *(t_forward = &lines);
}

// A gradient's op has the line of the op that it differentiates or, where that is not known, of the call of backward().
LocationId forward_line(LocationId backward_call) {
  const auto node = torch::autograd::get_current_node();
  const LocationId line = node ? forward_lines().find(*node) : kNoLocation;
  return line == kNoLocation ? backward_call | kBackwardCall : line | kInBackward;
}

// Set while a graph of torch.compile's is captured: its nodes know their lines.
LTC_THREAD_LOCAL LocationId t_known_line = kNoLocation;

LocationId locate() {
  if (t_known_line != kNoLocation) [[unlikely]]
    return t_known_line;
  const PythonPlace place = python_place();
  const LocationId line = place.in_engine ? forward_line(place.line) : place.line;
  forward_lines().add(line);
  return line;
}

}  // namespace

void set_known_line(std::string_view line) { t_known_line = line.empty() ? kNoLocation : intern_location(line); }

void record_source_lines(std::vector<std::string> library_folders) {
  set_library_folders(std::move(library_folders));
  set_locator(env::is_set(env::kStacks) ? &python_stack : &locate, &python_callers);
  static const int ended = Py_AtExit([] { set_locator(nullptr); });  // there are no frames any more
  (void)ended;
}

}  // namespace ltc
