#include "torchscript/execute.h"

#include <ATen/Parallel.h>
#include <ATen/ops/aminmax.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "torchscript/graph/schema.h"
#include "torchscript/ops/image_layout.h"
#include "torchscript/ops/operands.h"
#include "torchscript/ops/ops.h"
#include "torchscript/threads/memory_pool.h"
#include "torchscript/threads/quiet_dispatch.h"

namespace ltc::torchscript {
namespace {

// Images among packed operands all lie as the first one does.
void arrange(std::vector<c10::IValue>& operands, OperandLayout layout) {
  auto format = at::MemoryFormat::Contiguous;
  int64_t rank = -1;
  for (c10::IValue& operand : operands) {
    if (!operand.isTensor() || !operand.toTensor().defined()) continue;
    const at::Tensor& tensor = operand.toTensor();
    if (rank < 0 && layout == OperandLayout::kPacked) format = tensor.suggest_memory_format();
    if (rank < 0) rank = tensor.dim();
    operand = in_format(tensor, tensor.dim() == rank ? format : at::MemoryFormat::Contiguous);
  }
}

c10::IValue scalar_value(ltc_dtype dtype, const ltc_scalar& scalar) {
  switch (dtype) {
    case LTC_F64: return scalar.f;
    case LTC_BOOL: return scalar.i != 0;
    case LTC_C128: return c10::complex<double>(scalar.c[0], scalar.c[1]);
    default: return scalar.i;
  }
}

uint64_t bytes_of(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined() ? static_cast<uint64_t>(value.toTensor().nbytes()) : 0;
}

std::string describe(const at::Tensor& tensor) { return c10::str(tensor.scalar_type(), tensor.sizes()); }

}  // namespace

void Executable::run(ThreadLimit& thread_limit, const ltc_scalar* scalars, c10::ArrayRef<at::Tensor*> donated,
                     const plugin::Profiler* profiler) {
  scalars_ = scalars;
  profiler_ = profiler;
  for (const SlotScalar& scalar : slot_scalars_) slots_[scalar.slot] = scalar_value(scalar.dtype, scalars[scalar.index]);
  run_range(thread_limit, 0, commit_);
  // The host repeats a run that fails for want of memory, and then needs the inputs.
  if (!donated.empty() && (!device_.is_cpu() || can_allocate(bytes_behind_commit_))) {
    for (at::Tensor* tensor : donated) tensor->reset();
  }
  run_range(thread_limit, commit_, instructions_.size());
}

void Executable::run_range(ThreadLimit& thread_limit, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    const Instruction& instruction = instructions_[i];
    thread_limit.set(instruction.threads);
    try {
      profiler_ ? profiled_step(instruction) : step(instruction);
    } catch (...) {
      fail(instruction);
    }
  }
}

void Executable::profiled_step(const Instruction& instruction) {
  if (instruction.node == LTC_NONE) return step(instruction);
  const uint64_t bytes = operand_bytes(instruction), begin = plugin::Profiler::now_ns();
  step(instruction);
  const bool is_timed = device_.is_cpu();  // elsewhere it was only submitted
  plugin::Profiler::Kernel kernel{.note = instruction.note,
                                  .nodes = {&instruction.node, 1},
                                  .begin_ns = is_timed ? begin : 0,
                                  .end_ns = is_timed ? plugin::Profiler::now_ns() : 0,
                                  .bytes = bytes + result_bytes(instruction)};
  if (instruction.kind == Kind::kTiles) {
    kernel.name = tile_facts_[instruction.tiles].label;
    kernel.nodes = tile_facts_[instruction.tiles].nodes;
  } else if (instruction.op) {
    kernel.name = instruction.op->operator_name().name;
  } else {
    kernel.name = "check of indices";
  }
  profiler_->tell(kernel);
}

// Those of the tensors; of lists nothing.
uint64_t Executable::operand_bytes(const Instruction& instruction) const {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < instruction.operand_count; ++i) {
    bytes += bytes_of(slots_[operands_[instruction.first_operand + i].slot]);
  }
  return bytes;
}

uint64_t Executable::result_bytes(const Instruction& instruction) const {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < instruction.result_count; ++i) {
    const uint32_t slot = results_[instruction.first_result + i];
    if (slot != kUnwanted) bytes += bytes_of(slots_[slot]);
  }
  return bytes;
}

inline void Executable::step(const Instruction& instruction) {
  switch (instruction.kind) {
    case Kind::kCall: return call(instruction);
    case Kind::kWritingCall: return call_writing(instruction);
    case Kind::kDirect: call_directly(instruction); break;
    case Kind::kTiles: run_tiles(instruction); break;
    case Kind::kNumber: make(instruction); break;
    case Kind::kTensorList: make_list<at::Tensor>(instruction); break;
    case Kind::kOptionalTensorList: make_list<std::optional<at::Tensor>>(instruction); break;
    case Kind::kUnpack: unpack(instruction); break;
    case Kind::kCheckRows: return check_rows(instruction);
    case Kind::kForm: return make_form(instruction);
  }
  store_results(instruction);
}

inline void Executable::push_operands(const Instruction& instruction) {
  const Operand* operands = operands_.data() + instruction.first_operand;
  for (uint32_t i = 0; i < instruction.operand_count; ++i) stack_.push_back(fetch(operands[i]));
}

inline void Executable::call(const Instruction& instruction) {
  push_operands(instruction);
  if (instruction.layout != OperandLayout::kAny) arrange(stack_, instruction.layout);
  // A moved operand that is unshared was at its last use; a copied one is shared with its slot.
  const bool in_place = instruction.twin && is_exclusive(stack_[0]);
  (in_place ? *instruction.twin : *instruction.op).callBoxed(stack_);
  store_results(instruction);
}

// Operands that the operator writes are copied first, unless nobody else can see their memory.
void Executable::call_writing(const Instruction& instruction) {
  const auto& schema = instruction.op->schema();
  push_operands(instruction);
  if (instruction.layout != OperandLayout::kAny) arrange(stack_, instruction.layout);
  std::vector<c10::IValue> results;
  for (uint32_t i = 0; i < instruction.operand_count; ++i) {
    if (!is_written(schema.arguments()[i])) continue;
    if (stack_[i].isTensor()) {
      if (!is_exclusive(stack_[i])) stack_[i] = stack_[i].toTensor().clone(at::MemoryFormat::Contiguous);
      results.push_back(stack_[i]);
    } else if (stack_[i].isTensorList()) {
      std::vector<at::Tensor> tensors = stack_[i].toTensorVector();
      for (at::Tensor& tensor : tensors) results.emplace_back(tensor = tensor.clone(at::MemoryFormat::Contiguous));
      stack_[i] = std::move(tensors);
    }
  }
  instruction.op->callBoxed(stack_);
  for (size_t i = 0; i < stack_.size(); ++i) {
    if (is_written(schema.returns()[i])) continue;
    if (stack_[i].isTensorList()) {
      for (const at::Tensor& tensor : stack_[i].toTensorVector()) results.emplace_back(tensor);
    } else {
      results.push_back(std::move(stack_[i]));
    }
  }
  stack_ = std::move(results);
  store_results(instruction);
}

inline void Executable::call_directly(const Instruction& instruction) {
  push_operands(instruction);
  at::Tensor result = instruction.direct(stack_);
  stack_.clear();
  stack_.emplace_back(std::move(result));
}

inline void Executable::store_results(const Instruction& instruction) {
  if (stack_.size() != instruction.result_count) {
    throw Failure(LTC_INTERNAL, c10::str("returned ", stack_.size(), " results, not ", instruction.result_count));
  }
  const uint32_t* results = results_.data() + instruction.first_result;
  for (uint32_t i = 0; i < instruction.result_count; ++i) {
    if (results[i] != kUnwanted) slots_[results[i]] = std::move(stack_[i]);
  }
  stack_.clear();
#ifndef NDEBUG
  check_results(instruction);
#endif
}

void Executable::run_tiles(const Instruction& instruction) {
  push_operands(instruction);
  tiles_[instruction.tiles].run(stack_, scalars_);
}

void Executable::make(const Instruction& number) {
  const Operand* operands = operands_.data() + number.first_operand;
  const auto dtype = fetch(operands[1]).toOptional<at::ScalarType>();
  const at::Scalar value = fetch(operands[0]).toScalar();
  stack_.emplace_back(number.on_host ? make_number(value, dtype) : make_number_on(device_, value, dtype));
}

// Throws what the operator would that is to add to these rows.
void Executable::check_rows(const Instruction& instruction) {
  const at::Tensor index = fetch(operands_[instruction.first_operand]).toTensor();
  if (index.numel() == 0) return;
  const auto [least, most] = at::aminmax(index);
  for (const int64_t row : {least.item<int64_t>(), most.item<int64_t>()}) {
    TORCH_CHECK(row >= 0 && row < instruction.rows, "index ", row, " is out of bounds for dimension ", instruction.dim,
                " with size ", instruction.rows);
  }
}

// The buffer of the first param keeps the form, if it is made of this run's params alone and none is given away.
void Executable::make_form(const Instruction& instruction) {
  ContentIds contents;
  ltc_buffer* keeper = nullptr;
  for (uint32_t i = 0; i < instruction.operand_count; ++i) {
    const uint32_t slot = operands_[instruction.first_operand + i].slot;
    if (is_constant_[slot]) continue;
    ltc_buffer* const buffer = keepers_[slot];
    if (!buffer) return call(instruction);
    if (!keeper) keeper = buffer;
    contents.push_back(buffer->contents);
  }
  if (!keeper) return call(instruction);
  const std::string& key = form_keys_[instruction.form];
  push_operands(instruction);
  if (const std::vector<c10::IValue>* const kept = keeper->forms.find(key, contents)) {
    stack_ = *kept;
  } else {
    instruction.op->callBoxed(stack_);
    if (keeper->forms.offer(key, contents, stack_)) keeper->charge();
  }
  store_results(instruction);
}

template <typename Element>
void Executable::make_list(const Instruction& instruction) {
  c10::List<Element> list;
  list.reserve(instruction.operand_count);
  const Operand* operands = operands_.data() + instruction.first_operand;
  for (uint32_t i = 0; i < instruction.operand_count; ++i) list.push_back(fetch(operands[i]).to<Element>());
  stack_.emplace_back(std::move(list));
}

void Executable::unpack(const Instruction& instruction) {
  const c10::List<at::Tensor> list = fetch(operands_[instruction.first_operand]).toTensorList();
  for (size_t i = 0; i < list.size(); ++i) stack_.emplace_back(list.get(i));
}

void Executable::check_results(const Instruction& instruction) const {
  for (uint32_t i = 0; i < instruction.result_count; ++i) {
    const uint32_t slot = results_[instruction.first_result + i];
    if (slot == kUnwanted || !slots_[slot].isTensor() || specs_[slot].dtype == at::ScalarType::Undefined) continue;
    const at::Tensor& tensor = slots_[slot].toTensor();
    if (!tensor.defined() || specs_[slot].matches(tensor)) continue;
    throw Failure(LTC_INTERNAL, c10::str("result ", i, " is ", describe(tensor), ", declared ", to_string(specs_[slot])));
  }
}

void Executable::fail(const Instruction& instruction) {
  Error error = current_error();
  stack_.clear();
  error.node = instruction.node;  // by which the host names op and line
  if (instruction.op && error.node == LTC_NONE)
    error.message = c10::str("[", instruction.op->operator_name(), "] ", error.message);
  throw Failure(std::move(error));
}

at::Tensor Executable::take_output(size_t index) {
  const Operand output = outputs_[index];
  c10::IValue value = fetch(output);
  if (!value.isTensor() || !value.toTensor().defined() || value.toTensor().layout() != at::kStrided) {
    throw Failure(LTC_INTERNAL, c10::str("[execute] output ", index, " is no dense tensor"));
  }
  at::Tensor tensor = std::move(value).toTensor();
  if (tensor.device() != device_) throw Failure(LTC_INTERNAL, c10::str("[execute] output ", index, " is on ", tensor.device()));
  if (!specs_[output.slot].matches(tensor)) {
    throw Failure(LTC_INTERNAL,
                  c10::str("[execute] output ", index, " is ", describe(tensor), ", declared ", to_string(specs_[output.slot])));
  }
  // Buffers hold plain memory: no pending conjugation or negation, and full strength in type promotion.
  if (tensor.is_conj() || tensor.is_neg()) tensor = tensor.resolve_conj().resolve_neg();
  return tensor.unsafeGetTensorImpl()->is_wrapped_number() ? tensor.clone() : tensor;
}

void Executable::clear() noexcept {
  stack_.clear();
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!is_constant_[i]) slots_[i] = c10::IValue();
  }
}

namespace {

// `repeated` operands cannot be given away.
void check_input(ltc_device* device, ltc_buffer* buffer, size_t index, bool donated, const TensorSpec& spec) {
  if (!buffer || !buffer->tensor.defined()) {
    throw Failure(LTC_INVALID_ARGUMENT,
                  c10::str("[execute] input ", index, buffer ? " is the output of a run that failed" : " is NULL"));
  }
  if (buffer->device != device) throw Failure(LTC_INVALID_ARGUMENT, c10::str("[execute] input ", index, " is on another device"));
  if (!spec.matches(buffer->tensor)) {
    throw Failure(LTC_INVALID_ARGUMENT,
                  c10::str("[execute] input ", index, " is ", describe(buffer->tensor), ", compiled for ", to_string(spec)));
  }
  const bool repeated = std::exchange(buffer->seen_in, device->submits) == device->submits;
  if (repeated && (donated || buffer->donated)) {
    throw Failure(LTC_INVALID_ARGUMENT, c10::str("[execute] input ", index, " is donated and given twice"));
  }
  buffer->donated = donated;
}

void check_arguments(ltc_device* device, const Executable& executable, const ltc_execute_args& args) {
  check_counts(args, executable.inputs().size(), executable.scalar_count(), executable.output_count());
  ++device->submits;
  for (size_t i = 0; i < args.input_count; ++i) {
    check_input(device, args.inputs[i], i, args.donate && args.donate[i], executable.inputs()[i].spec);
  }
}

c10::ArrayRef<int64_t> symbols_of(const ltc_execute_args& args) {
  const auto* given = reinterpret_cast<const ltc_symbol_values*>(ltc_find_extension(args.ext, LTC_EXTENSION_SYMBOLIC));
  return given ? c10::ArrayRef<int64_t>(given->values, given->symbol_count) : c10::ArrayRef<int64_t>();
}

// Returns the memory of those that are donated: a run that is committed lets go of it.
std::vector<at::Tensor*> load_inputs(Executable& executable, const ltc_execute_args& args) {
  std::vector<at::Tensor*> donated;
  if (args.donate) donated.reserve(args.input_count);
  for (size_t i = 0; i < args.input_count; ++i) {
    const bool is_donated = args.donate && args.donate[i];
    executable.load(executable.inputs()[i], args.inputs[i]->tensor, is_donated ? nullptr : args.inputs[i]);
    if (is_donated) donated.push_back(&args.inputs[i]->tensor);
  }
  return donated;
}

bool is_consumed(c10::ArrayRef<at::Tensor*> donated) {
  return std::ranges::any_of(donated, [](const at::Tensor* tensor) { return !tensor->defined(); });
}

// The outputs of a failed run must be allocated: the host may still pass them on. Zeros, so that failures are repeatable.
void hold_anything(ltc_buffer& buffer, const TensorSpec& spec) noexcept {
  try {
    buffer.hold(dense(spec.sizes, spec.dtype, buffer.device->queue.device()));
    buffer.tensor.zero_();
  } catch (...) {
    buffer.hold({});
  }
}

}  // namespace

std::optional<Error> submit(ltc_device* device, Executable& executable, const ltc_execute_args& args, ltc_buffer** outputs) {
  const std::lock_guard alone(executable.mutex());
  executable.bind_sizes(symbols_of(args));
  check_arguments(device, executable, args);
  at::init_num_threads();  // a later torch.set_num_threads of another thread binds this one too
  ThreadLimit thread_limit(device->plugin->host, device->plugin->thread_pool);
  QuietDispatch quiet;
  const OnQueue on(device->queue);
  MemoryPoolScope pooled;
  std::vector<std::unique_ptr<ltc_buffer>> results(args.output_count);
  for (auto& result : results) result = std::make_unique<ltc_buffer>(device);
  const std::vector<at::Tensor*> donated = load_inputs(executable, args);
  const plugin::Profiler profiler(args);
  std::optional<Error> failure;
  try {
    executable.run(thread_limit, args.scalars, donated, profiler ? &profiler : nullptr);
    for (size_t i = 0; i < results.size(); ++i) results[i]->hold(executable.take_output(i));
  } catch (...) {
    failure = current_error();
    executable.clear();
    if (!is_consumed(donated)) throw Failure(*std::move(failure));
    for (size_t i = 0; i < results.size(); ++i) hold_anything(*results[i], executable.output_spec(i));
  }
  for (size_t i = 0; !donated.empty() && i < args.input_count; ++i) {
    if (args.donate[i]) delete args.inputs[i];
  }
  for (size_t i = 0; i < results.size(); ++i) outputs[i] = results[i].release();
  return failure;
}

}  // namespace ltc::torchscript
