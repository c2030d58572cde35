#include <algorithm>
#include <cstring>

#include "core/deploy/model.h"
#include "core/ir/text.h"
#include "core/run/queue/copy_out.h"

namespace ltc::deploy {
namespace {

// `what` are the parts of a text that names the tensor.
template <typename... What>
void require_fits(const TensorView& view, TypeId expected, const What&... what) {
  const Type& type = type_of(expected);
  if (view.dtype != type.dtype || !std::ranges::equal(view.sizes, type.sizes)) [[unlikely]]
    fail(Code::kInvalidArgument, what..., " is ", text_of(view), ", and is to be ", type_text(expected));
  if (view.size_bytes != type.size_bytes()) [[unlikely]]
    fail(Code::kInvalidArgument, what..., " has ", view.size_bytes, " bytes, and ", type_text(expected), " is ",
         type.size_bytes());
  if (!view.data && type.size_bytes() > 0) [[unlikely]]
    fail(Code::kInvalidArgument, what..., " has no data");
}

// A generator in a file: seed and offset.
std::string generator_name(size_t index) { return cat("generator.", index); }
TypeId generator_type() {
  static constexpr int64_t kTwo = 2;
  return intern_contiguous(DType::kU64, {&kTwo, 1});
}

std::shared_ptr<const void> borrow(const void* data) { return {std::shared_ptr<const void>(), data}; }

}  // namespace

Session::Session(std::shared_ptr<Model> model)
    : model_(std::move(model)),
      instance_(model_->next_instance()),
      state_(instance_.state),
      generators_(model_->archive().manifest().generators) {}

const BufferRef& Session::held(size_t state) const {
  const BufferRef& buffer = state_[state];
  if (!buffer || !buffer->handle) [[unlikely]]
    fail(Code::kCancelled, "the value of state ", model_->archive().state()[state].name,
         buffer ? " lived on a device that was lost" : " was lost with a call that failed",
         ": set it, load the state, or reset the session");
  return buffer;
}

// The instance's device is the caller's, and open.
std::unique_lock<std::mutex> Session::take_turn() {
  std::unique_lock lock(instance_.device.mutex);
  model_->reopen_if_lost(instance_);
  return lock;
}

BufferRef Session::value_of(const ValueSource& source, std::span<const BufferRef> given,
                            std::span<const BufferRef> outputs) const {
  switch (source.kind) {
    case ValueSource::kInput: return given[source.index];
    case ValueSource::kState: return held(source.index);
    case ValueSource::kConstant: return instance_.constants[source.index];
    case ValueSource::kOutput: break;
  }
  return outputs[source.index];
}

// A value that the call may take over is the call's alone from here on.
void Session::take_inputs(const Function& function, const LoadedFunction& loaded) {
  for (const ValueSource& source : function.params) {
    if (source.kind == ValueSource::kState) held(source.index);
  }
  std::vector<BufferRef>& inputs = call_.run.inputs;
  inputs.reserve(function.params.size());  // nothing throws once a value is taken
  for (const ValueSource& source : function.params) {
    const bool is_given_up = source.kind == ValueSource::kState && loaded.gives_up[source.index];
    inputs.push_back(is_given_up ? std::move(state_[source.index]) : value_of(source, call_.given, {}));
  }
}

// The state that a failed call has not consumed. Returns a text about the rest; empty if that is none.
std::string Session::put_back(const Function& function) {
  std::string lost;
  for (size_t i = 0; i < call_.run.inputs.size(); ++i) {
    const ValueSource& source = function.params[i];
    if (source.kind != ValueSource::kState) continue;
    if (call_.run.inputs[i]->handle) {
      state_[source.index] = call_.run.inputs[i];
    } else {
      lost += cat(lost.empty() ? "; lost with the call: state " : ", ", model_->archive().state()[source.index].name);
    }
  }
  return lost;
}

void Session::take_scalars(const Function& function) {
  call_.generators = generators_;
  for (const Draw& draw : function.draws) {
    Generator& generator = call_.generators[draw.generator];
    call_.drawn_at.push_back(generator);
    generator.offset += static_cast<uint64_t>(draw.advance.value(call_.sizes));
  }
  std::vector<Scalar>& scalars = call_.run.scalars;
  for (const Number& number : function.numbers) {
    scalars.push_back(number.value_at(call_.sizes));
    if (number.kind == Number::kValue) continue;
    const auto& [seed, offset] = call_.drawn_at[number.draw];
    scalars.back().i = static_cast<int64_t>(number.kind == Number::kSeed ? seed : offset);
  }
}

void Session::Call::clear() {
  for (auto* list : {&given, &updated, &run.inputs, &run.outputs}) list->clear();
  drawn_at.clear();
  run.scalars.clear();
  run.program = nullptr;
}

void Session::copy_out(const BufferRef& buffer, void* to) {
  DeviceExecutor::CopyOut(instance_.device.executor, buffer, to, nullptr).finish();
}

void Session::run(size_t index, std::span<const TensorView> inputs, std::span<const TensorView> results) {
  const Function& function = model_->functions()[index];
  if (inputs.size() != function.inputs.size() || results.size() != function.results.size())
    fail(Code::kInvalidArgument, "function ", function.name, " takes ", function.inputs.size(), " inputs and gives ",
         function.results.size(), " results, and was called with ", inputs.size(), " and ", results.size());
  take_sizes_of_call(function, inputs, call_.sizes);
  const auto turn = take_turn();
  const LoadedFunction& loaded = model_->loaded(instance_, index, call_.sizes);
  for (size_t i = 0; i < inputs.size(); ++i)
    require_fits(inputs[i], loaded.inputs[i], "function ", function.name, ": input ", function.inputs[i].name);
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].data)
      require_fits(results[i], loaded.results[i], "function ", function.name, ": result ", function.results[i].name);
  }
  call_.clear();
  take_scalars(function);
  try {
    compute(function, loaded, inputs, results);
  } catch (...) {
    call_.clear();
    throw;
  }
  for (size_t i = 0; i < call_.updated.size(); ++i) state_[function.updates[i].state] = std::move(call_.updated[i]);
  generators_.swap(call_.generators);
  call_.clear();
}

void Session::compute(const Function& function, const LoadedFunction& loaded, std::span<const TensorView> inputs,
                      std::span<const TensorView> results) {
  Device& device = instance_.device;
  auto& [sizes, generators, drawn_at, given, updated, run] = call_;
  for (size_t i = 0; i < inputs.size(); ++i) given.push_back(device.upload(loaded.inputs[i], borrow(inputs[i].data)));
  run.program = loaded.program;
  for (const TypeId output : loaded.outputs) run.outputs.push_back(make_buffer(device, output));
  take_inputs(function, loaded);
  try {
    if (loaded.program) device.executor.run_steps(run);
    for (const BufferRef& output : run.outputs) output->wait_made();
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].data) copy_out(value_of(function.result_sources[i], given, run.outputs), results[i].data);
    }
    for (const Update& update : function.updates) updated.push_back(value_of(update.from, given, run.outputs));
  } catch (const std::exception& error) {
    device.executor.finish();  // until nothing reads the caller's memory
    const std::string lost = put_back(function);
    const auto* ours = dynamic_cast<const Error*>(&error);
    fail(ours ? ours->code() : Code::kInternal, "function ", function.name, ": ", error.what(), lost);
  }
  for (const BufferRef& input : given) {
    if (input->completion) input->completion->wait_until_over();
  }
}

void Session::get_state(size_t state, const TensorView& to) {
  const NamedTensor& value = model_->archive().state()[state];
  require_fits(to, value.type, "state ", value.name);
  const auto turn = take_turn();
  copy_out(held(state), to.data);
}

void Session::set_state(size_t state, const TensorView& from) {
  const NamedTensor& value = model_->archive().state()[state];
  require_fits(from, value.type, "state ", value.name);
  const auto turn = take_turn();
  BufferRef buffer = instance_.device.upload(value.type, borrow(from.data));
  if (buffer->completion) buffer->completion->wait_until_over();
  state_[state] = std::move(buffer);
}

void Session::reset() {
  std::lock_guard lock(instance_.device.mutex);
  state_ = instance_.state;
  generators_ = model_->archive().manifest().generators;
}

void Session::save(const std::string& path) {
  const std::vector<NamedTensor>& state = model_->archive().state();
  std::vector<std::string> memory;
  memory.reserve(state.size() + generators_.size());
  std::vector<NamedTensor> tensors;
  {
    const auto turn = take_turn();
    for (size_t i = 0; i < state.size(); ++i) {
      memory.emplace_back(type_of(state[i].type).size_bytes(), '\0');
      copy_out(held(i), memory.back().data());
      tensors.push_back({state[i].name, state[i].type, memory.back()});
    }
  }
  for (size_t i = 0; i < generators_.size(); ++i) {
    memory.emplace_back(reinterpret_cast<const char*>(&generators_[i]), sizeof(Generator));
    tensors.push_back({generator_name(i), generator_type(), memory.back()});
  }
  const std::string header = safetensors_header(tensors);
  std::vector<std::string_view> parts{header};
  for (const NamedTensor& tensor : tensors) parts.push_back(tensor.data);
  write_file(path, parts);
}

void Session::load(const std::string& path) {
  const auto file = MappedFile::open(path);
  const std::vector<NamedTensor> found = read_safetensors(file->bytes(), path);
  const std::vector<NamedTensor>& state = model_->archive().state();
  if (found.size() != state.size() + generators_.size())
    fail(Code::kInvalidArgument, path, " has ", found.size(), " tensors, and the state of ", model_->archive().path(), " has ",
         state.size() + generators_.size());
  const TensorsByName by_name = tensors_by_name(found);
  const auto tensor = [&](const std::string& name, TypeId type) -> const NamedTensor& {
    const auto it = by_name.find(name);
    if (it == by_name.end()) fail(Code::kInvalidArgument, path, " has no tensor ", name);
    if (it->second->type != type)
      fail(Code::kInvalidArgument, path, ": tensor ", name, " is ", type_text(it->second->type), ", and is to be ",
           type_text(type));
    return *it->second;
  };
  std::vector<Generator> generators(generators_.size());
  for (size_t i = 0; i < generators.size(); ++i)
    std::memcpy(&generators[i], tensor(generator_name(i), generator_type()).data.data(), sizeof(Generator));
  const auto turn = take_turn();
  std::vector<BufferRef> buffers;
  for (const NamedTensor& value : state)
    buffers.push_back(
        instance_.device.upload(value.type, std::shared_ptr<const void>(file, tensor(value.name, value.type).data.data())));
  state_ = std::move(buffers);
  generators_ = std::move(generators);
}

}  // namespace ltc::deploy
