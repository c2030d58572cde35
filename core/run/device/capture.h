// Recording a function once, to be run again without recording it: torch.compile and ltc.jit.
//
// The thread that captures records on a trace of its own, from placeholders of the function's arguments; other threads record as
// ever. The trace is the one that the function leaves when it is recorded in the ordinary way, so both find the same program.
// Nothing from outside may be read or written, and no value asked for: it would be one for ever. Such a capture is refused, by an
// Error at the line that asks.
#pragma once

#include <unordered_map>

#include "core/run/device/capture_state.h"
#include "core/run/device/lazy_device.h"

namespace ltc {

// The source of a storage's contents, or of an input that a program reads.
struct BindingSource {
  enum Kind : uint8_t { kArgument, kOutput, kConstant, kNothing } kind = kNothing;
  uint32_t index = 0;       // of the argument, or of the program's output
  BufferRef constant = {};  // made while capturing, the same at each call
  bool operator==(const BindingSource&) const = default;
};

// Numbers that the function drew from a random generator: each call draws its own.
struct RngUse {
  uint32_t seed, offset;            // which of the scalars they are
  TypeId type;                      // of what is drawn
  std::shared_ptr<void> generator;  // for who draws
  bool operator==(const RngUse&) const = default;
};

// A storage to bind when the function is called: of the arguments, those that it wrote; after them, its results.
struct Binding {
  uint32_t storage;
  BindingSource source;
  TypeId type;  // with the declared strides
  bool operator==(const Binding&) const = default;
};

// The records of a short function, to be recorded once more where its call belongs to a step that is being recorded.
struct ShortRecording {
  Trace trace;
  std::vector<LocationId> locations;  // of its nodes
  std::vector<BindingSource> reads;   // what its buffer params are
  std::vector<ValueId> outputs;       // its values that are the program's outputs
};

// The function as a program. Immutable: any thread may run it.
struct LTC_API Captured {
  std::shared_ptr<const Program> program;  // null if there is nothing to compute
  uint32_t precision = 0;                  // with which it was compiled; see compile/lowering/precision.h
  std::vector<BindingSource> inputs;       // of the step's buffer params
  std::vector<TypeId> outputs;
  // The lines of this function: of its nodes, and of the op that makes each output. `step` has those of the first function that
  // was recorded so.
  std::vector<LocationId> locations, output_lines;
  std::vector<uint32_t> scalar_of;  // of its scalar params: which of `scalars`
  std::vector<Scalar> scalars;
  std::vector<DType> scalar_dtypes;
  std::vector<RngUse> rng_uses;
  std::vector<Binding> bindings;
  std::shared_ptr<const RecordedStep> step;         // that the program was compiled from
  Undo undo;                                        // without the buffers of arguments
  std::vector<BindingSource> overwritten;           // by entry of the undo's history, what such a buffer is
  std::shared_ptr<const ShortRecording> recording;  // null of a long function

  // Whether they are one function but for the values of their scalars.
  bool computes_like(const Captured& other) const;
};

class LTC_API Capture : public CaptureState {
 public:
  // The calling thread records here until finish() or the destructor, in the same thread. Throws with LTC_EAGER.
  explicit Capture(LazyDevice& device);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // `placeholder`, fresh, now holds what the next argument will hold. The caller keeps it alive until finish() or the destructor.
  void add_argument(LazyStorage& placeholder, TypeId type);
  // Notes that the two scalars recorded last are a draw of `generator`.
  void note_draw(TypeId type, std::shared_ptr<void> generator);
  const std::vector<RngUse>& rng_uses() const { return rng_uses_; }  // empty once finished

  // Compiles what was recorded, or finds it. `results` and the placeholders are alive. Refuses where one of them holds what this
  // capture has not made: another thread wrote it, or it comes from outside. One that is not compiled has no program: it can be
  // looked at, and not be called.
  Captured finish(std::span<LazyStorage* const> results, bool compiles = true);

 private:
  void end();
  BindingSource source_of(const BufferRef& buffer) const;
  std::shared_ptr<const ShortRecording> recording(std::span<const Root> roots) const;
  void note_overwritten(Captured& captured);
  bool holds_own(const LazyStorage& storage) const;
  bool bind_results(Captured& captured, std::span<LazyStorage* const> results, std::span<const Root> roots) const;

  CaptureState* const outer_;
  std::vector<LazyStorage*> placeholders_;
  std::unordered_map<const Buffer*, uint32_t> argument_of_;  // by the buffer that stands for it; the trace state keeps it
  std::vector<RngUse> rng_uses_;
  bool is_open_ = true;
};

// The capture of the calling thread; null mostly.
inline Capture* current_capture() { return static_cast<Capture*>(t_capture); }

}  // namespace ltc
