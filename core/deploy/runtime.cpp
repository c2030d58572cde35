// The C functions of ltc/runtime.h over model.h.

#include "ltc/runtime.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <new>

#include "core/deploy/model.h"
#include "core/host/search.h"

using ltc::Code;
using ltc::deploy::Graphs;
using ltc::deploy::TensorView;

struct ltcr_error {
  ltc_code code;
  std::string message;
};

namespace {

ltcr_tensor_info info_of(const std::string& name, ltc::TypeId id) {
  const ltc::Type& type = ltc::type_of(id);
  return {name.c_str(), static_cast<ltc_dtype>(type.dtype), static_cast<uint32_t>(type.sizes.size()), type.sizes.data(),
          type.size_bytes()};
}

// Infos of the tensors of functions. `sizes` keeps the sizes of those of which some vary.
std::vector<ltcr_tensor_info> infos_of(const std::vector<ltc::deploy::NamedType>& tensors,
                                       std::deque<std::vector<int64_t>>& sizes) {
  std::vector<ltcr_tensor_info> infos;
  for (const auto& tensor : tensors) {
    infos.push_back(info_of(tensor.name, tensor.type));
    if (tensor.sizes.empty()) continue;
    std::vector<int64_t>& shown = sizes.emplace_back();
    for (const auto& size : tensor.sizes) shown.push_back(size.dimensions.empty() ? size.offset : -1);
    infos.back().sizes = shown.data(), infos.back().size_bytes = 0;
  }
  return infos;
}

// Null where there is no such number.
const auto* at(const auto& list, size_t index) { return index < list.size() ? &list[index] : nullptr; }

}  // namespace

struct ltcr_model {
  explicit ltcr_model(std::shared_ptr<ltc::deploy::Model> loaded) : model(std::move(loaded)) {
    for (const auto& function : model->functions()) {
      inputs.push_back(infos_of(function.inputs, sizes));
      results.push_back(infos_of(function.results, sizes));
      std::vector<ltcr_dimension>& own = dimensions.emplace_back();
      for (const auto& dimension : function.dimensions)
        if (dimension.is.empty()) own.push_back({dimension.name.c_str(), dimension.min, dimension.max});
    }
    for (const auto& tensor : model->archive().state()) state.push_back(info_of(tensor.name, tensor.type));
  }

  const std::shared_ptr<ltc::deploy::Model> model;
  std::vector<std::vector<ltcr_tensor_info>> inputs, results;  // by function
  std::vector<std::vector<ltcr_dimension>> dimensions;         // by function
  std::vector<ltcr_tensor_info> state;
  std::deque<std::vector<int64_t>> sizes;
};

struct ltcr_session : ltc::deploy::Session {
  using Session::Session;
  std::vector<TensorView> inputs, results;  // of the call that is made
};

namespace {

// Null where the work returns, else the error that it throws. One that needs no memory stands for an error that finds none.
template <typename Work>
ltcr_error* guard(Work work) noexcept {
  const auto make = [](Code code, const char* message) -> ltcr_error* {
    try {
      return new ltcr_error{static_cast<ltc_code>(code), message};
    } catch (...) {
      static ltcr_error no_memory{LTC_RESOURCE_EXHAUSTED, ""};
      return &no_memory;
    }
  };
  try {
    work();
    return nullptr;
  } catch (const ltc::Error& error) {
    return make(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return make(Code::kResourceExhausted, "the host has no memory left");
  } catch (const std::exception& error) {
    return make(Code::kInternal, error.what());
  }
}

void require(const void* argument, const char* name) {
  if (!argument) ltc::fail(Code::kInvalidArgument, name, " is null");
}

TensorView view_of(const ltcr_tensor& tensor) {
  if (tensor.rank > 0) require(tensor.sizes, "sizes of a tensor");
  return {static_cast<ltc::DType>(tensor.dtype), {tensor.sizes, tensor.rank}, tensor.data, tensor.size_bytes};
}

const std::vector<TensorView>& take_views(std::vector<TensorView>& views, const ltcr_tensor* tensors, size_t count,
                                          const char* name) {
  if (count > 0) require(tensors, name);
  views.clear();
  for (size_t i = 0; i < count; ++i) views.push_back(view_of(tensors[i]));
  return views;
}

void require_state(const ltcr_session* session, size_t state) {
  require(session, "session");
  const size_t count = session->model().archive().state().size();
  if (state >= count) ltc::fail(Code::kInvalidArgument, "there is no state ", state, ": the model has ", count);
}

}  // namespace

ltc_code ltcr_error_code(const ltcr_error* error) { return error->code; }
const char* ltcr_error_message(const ltcr_error* error) {
  return error->message.empty() ? "the host has no memory left" : error->message.c_str();
}
void ltcr_error_destroy(ltcr_error* error) {
  if (error && !error->message.empty()) delete error;
}

const char* ltcr_version() { return LTC_VERSION; }

ltcr_error* ltcr_model_load(const char* path, const ltcr_model_options* options, ltcr_model** model) {
  return guard([&] {
    require(path, "path"), require(model, "model");
    ltcr_model_options given{};
    if (options) std::memcpy(&given, options, std::min(options->struct_size, sizeof given));
    if (given.flags & ~(uint32_t{LTCR_RUN_EXECUTABLES} | LTCR_TRUST_GRAPHS))
      ltc::fail(Code::kInvalidArgument, "flags ", given.flags, " are not known");
    const ltc::deploy::ModelOptions ours{
        given.backend ? given.backend : "", ltc::host::plugin_folders(), (given.flags & LTCR_RUN_EXECUTABLES) != 0,
        given.flags & LTCR_TRUST_GRAPHS ? Graphs::kTrusted : Graphs::kChecked, std::max(given.instances, 1u)};
    *model = new ltcr_model(ltc::deploy::Model::load(path, ours));
  });
}

void ltcr_model_destroy(ltcr_model* model) { delete model; }

size_t ltcr_function_count(const ltcr_model* model) { return model->inputs.size(); }
const char* ltcr_function_name(const ltcr_model* model, size_t function) {
  const auto* found = at(model->model->functions(), function);
  return found ? found->name.c_str() : nullptr;
}
size_t ltcr_input_count(const ltcr_model* model, size_t function) {
  const auto* inputs = at(model->inputs, function);
  return inputs ? inputs->size() : 0;
}
size_t ltcr_result_count(const ltcr_model* model, size_t function) {
  const auto* results = at(model->results, function);
  return results ? results->size() : 0;
}
const ltcr_tensor_info* ltcr_input(const ltcr_model* model, size_t function, size_t input) {
  const auto* inputs = at(model->inputs, function);
  return inputs ? at(*inputs, input) : nullptr;
}
const ltcr_tensor_info* ltcr_result(const ltcr_model* model, size_t function, size_t result) {
  const auto* results = at(model->results, function);
  return results ? at(*results, result) : nullptr;
}
size_t ltcr_state_count(const ltcr_model* model) { return model->state.size(); }
const ltcr_tensor_info* ltcr_state(const ltcr_model* model, size_t state) { return at(model->state, state); }

ltcr_error* ltcr_find_function(const ltcr_model* model, const char* name, size_t* function) {
  return guard([&] {
    require(model, "model"), require(name, "name"), require(function, "function");
    *function = model->model->archive().find_function(name);
  });
}

ltcr_error* ltcr_find_state(const ltcr_model* model, const char* name, size_t* state) {
  return guard([&] {
    require(model, "model"), require(name, "name"), require(state, "state");
    *state = model->model->archive().find_state(name);
  });
}

const char* ltcr_metadata(const ltcr_model* model, const char* key) {
  const std::string* value = key ? model->model->archive().find_metadata(key) : nullptr;
  return value ? value->c_str() : nullptr;
}

size_t ltcr_dimension_count(const ltcr_model* model, size_t function) {
  const auto* dimensions = at(model->dimensions, function);
  return dimensions ? dimensions->size() : 0;
}
const ltcr_dimension* ltcr_function_dimension(const ltcr_model* model, size_t function, size_t dimension) {
  const auto* dimensions = at(model->dimensions, function);
  return dimensions ? at(*dimensions, dimension) : nullptr;
}
const ltcr_dimension* ltcr_input_dimension(const ltcr_model* model, size_t function, size_t input, size_t dim) {
  const auto* found = at(model->model->functions(), function);
  const auto* tensor = found ? at(found->inputs, input) : nullptr;
  const auto* size = tensor ? at(tensor->sizes, dim) : nullptr;
  return size ? ltcr_function_dimension(model, function, size->plain_dimension()) : nullptr;
}

ltcr_error* ltcr_result_sizes(const ltcr_model* model, size_t function, const ltcr_tensor* inputs, size_t input_count,
                              size_t result, int64_t* sizes, size_t* size_bytes) {
  return guard([&] {
    require(model, "model");
    const ltcr_tensor_info* info = ltcr_result(model, function, result);
    if (!info) ltc::fail(Code::kInvalidArgument, "there is no result ", result, " of a function ", function);
    if (info->rank > 0) require(sizes, "sizes");
    const size_t count = ltcr_input_count(model, function);
    if (input_count != count)
      ltc::fail(Code::kInvalidArgument, "the function takes ", count, " inputs, and was given ", input_count);
    std::vector<TensorView> views;
    const auto types =
        ltc::deploy::results_of_call(model->model->functions()[function], take_views(views, inputs, input_count, "inputs"));
    const ltc::Type& type = ltc::type_of(types[result]);
    std::ranges::copy(type.sizes, sizes);
    if (size_bytes) *size_bytes = type.size_bytes();
  });
}

ltcr_error* ltcr_session_create(ltcr_model* model, ltcr_session** session) {
  return guard([&] {
    require(model, "model"), require(session, "session");
    *session = new ltcr_session(model->model);
  });
}

void ltcr_session_destroy(ltcr_session* session) { delete session; }

ltcr_error* ltcr_session_run(ltcr_session* session, size_t function, const ltcr_tensor* inputs, size_t input_count,
                             const ltcr_tensor* results, size_t result_count) {
  return guard([&] {
    require(session, "session");
    const size_t count = session->model().functions().size();
    if (function >= count) ltc::fail(Code::kInvalidArgument, "there is no function ", function, ": the model has ", count);
    session->run(function, take_views(session->inputs, inputs, input_count, "inputs"),
                 take_views(session->results, results, result_count, "results"));
  });
}

ltcr_error* ltcr_session_get_state(ltcr_session* session, size_t state, const ltcr_tensor* to) {
  return guard([&] {
    require(to, "to"), require_state(session, state);
    session->get_state(state, view_of(*to));
  });
}

ltcr_error* ltcr_session_set_state(ltcr_session* session, size_t state, const ltcr_tensor* from) {
  return guard([&] {
    require(from, "from"), require_state(session, state);
    session->set_state(state, view_of(*from));
  });
}

ltcr_error* ltcr_session_save(ltcr_session* session, const char* path) {
  return guard([&] {
    require(session, "session"), require(path, "path");
    session->save(path);
  });
}

ltcr_error* ltcr_session_load(ltcr_session* session, const char* path) {
  return guard([&] {
    require(session, "session"), require(path, "path");
    session->load(path);
  });
}

void ltcr_session_reset(ltcr_session* session) { session->reset(); }
