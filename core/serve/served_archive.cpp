#include "core/serve/served_archive.h"

#include <cstring>

#include "core/run/queue/compare_values.h"
#include "core/serve/inference_protocol.h"

namespace ltc::serve {
namespace {

// The dimension that dim 0 of every input and of every result is; kNone where there is none.
uint32_t row_dimension(const deploy::Function& function) {
  uint32_t found = kNone;
  for (const auto* tensors : {&function.inputs, &function.results}) {
    for (const deploy::NamedType& tensor : *tensors) {
      if (tensor.sizes.empty()) return kNone;
      const uint32_t dimension = tensor.sizes[0].plain_dimension();
      if (dimension == kNone || (found != kNone && dimension != found)) return kNone;
      found = dimension;
    }
  }
  return found;
}

HostValue rotated(const HostValue& value) {
  HostValue result = allocate_host_value(value.type);
  const size_t bytes = type_of(value.type).size_bytes(), row = bytes / static_cast<size_t>(type_of(value.type).sizes[0]);
  const auto* from = static_cast<const char*>(value.data.get());
  auto* to = static_cast<char*>(result.data.get());
  std::memcpy(to, from + row, bytes - row);
  std::memcpy(to + bytes - row, from, row);
  return result;
}

HostValue first_row(const HostValue& value) {
  std::vector<int64_t> sizes = type_of(value.type).sizes;
  sizes[0] = 1;
  HostValue result = allocate_host_value(intern_contiguous(type_of(value.type).dtype, sizes));
  std::memcpy(result.data.get(), value.data.get(), type_of(result.type).size_bytes());
  return result;
}

std::vector<HostValue> run(deploy::Session& session, size_t function, const std::vector<HostValue>& inputs) {
  std::vector<TensorView> given, views;
  for (const HostValue& input : inputs) given.push_back(deploy::view_of(input.type, input.data.get()));
  std::vector<HostValue> results;
  for (const TypeId type : deploy::results_of_call(session.model().functions()[function], given)) {
    results.push_back(allocate_host_value(type));
    views.push_back(deploy::view_of(type, results.back().data.get()));
  }
  session.run(function, given, views);
  return results;
}

bool are_equal(const std::vector<HostValue>& a, const std::vector<HostValue>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].type != b[i].type) return false;
    if (compare_values(a[i], b[i], tolerance_of(type_of(a[i].type).dtype), magnitude_of(b[i]))) return false;
  }
  return true;
}

// Whether each row of the results depends on the same row of the inputs alone, as far as a sample tells: the rows in another
// order give the results in that order, and the first row alone gives the first result.
std::string dependence_of_rows(deploy::Session& session, size_t index) {
  const deploy::Function& function = session.model().functions()[index];
  for (const std::string& entry : function.samples) {
    const auto sample = session.model().archive().sample(entry);
    const deploy::TensorsByName by_name = deploy::tensors_by_name(sample);
    std::vector<HostValue> inputs, other_order, alone;
    for (const deploy::NamedType& input : function.inputs) {
      const auto found = by_name.find("input." + input.name);
      if (found == by_name.end()) break;
      inputs.push_back(allocate_host_value(found->second->type));
      std::memcpy(inputs.back().data.get(), found->second->data.data(), found->second->data.size());
    }
    if (inputs.size() != function.inputs.size() || type_of(inputs[0].type).sizes[0] < 2) continue;
    std::ranges::transform(inputs, std::back_inserter(other_order), rotated);
    std::ranges::transform(inputs, std::back_inserter(alone), first_row);
    const std::vector<HostValue> results = run(session, index, inputs);
    std::vector<HostValue> expected, expected_alone;
    std::ranges::transform(results, std::back_inserter(expected), rotated);
    std::ranges::transform(results, std::back_inserter(expected_alone), first_row);
    if (!are_equal(run(session, index, other_order), expected)) return "in its sample, rows depend on each other";
    if (!are_equal(run(session, index, alone), expected_alone)) return "in its sample, a row alone gives another result";
    return "";
  }
  return "it has no sample of two rows that would show whether they are independent";
}

Runner runner_of(deploy::Session& session) {
  return [&session](size_t function, std::span<const TensorView> inputs, std::span<const TensorView> results) {
    session.run(function, inputs, results);
  };
}

}  // namespace

ServedArchive::ServedArchive(const std::string& name, const std::string& path, const ArchiveOptions& options, Registry& registry)
    : name_(name), model_(deploy::Model::load(path, options.model)) {
  std::optional<TextModel> text_model;
  if (const auto failure = failure_of([&] { text_model = find_text_model(model_->archive()); }))
    report_ += cat(name_, " generates no text: ", failure->message, "\n");
  serve_functions(options, text_model ? &*text_model : nullptr, registry);
  if (text_model) serve_texts(options, *text_model, registry);
  if (!scheduler_ && !generator_) fail(Code::kUnsupported, path, " has no function that can be served:\n", report_);
}

void ServedArchive::serve_functions(const ArchiveOptions& options, const TextModel* text_model, Registry& registry) {
  std::vector<size_t> indices;
  for (size_t i = 0; i < model_->functions().size(); ++i) {
    if (text_model && (i == text_model->prefill || i == text_model->decode)) continue;
    const deploy::Function& function = model_->functions()[i];
    std::string reason = function.updates.empty() ? "" : "it changes the state, which requests share";
    for (const auto* tensors : {&function.inputs, &function.results}) {
      for (const deploy::NamedType& tensor : *tensors) {
        if (const DType dtype = type_of(tensor.type).dtype; datatype_name(dtype).empty())
          reason = cat(tensor.name, " is ", dtype_name(dtype), ", which the protocol does not have");
      }
    }
    if (reason.empty()) {
      indices.push_back(i);
    } else {
      report_ += cat(name_, ".", function.name, " is not served: ", reason, "\n");
    }
  }
  if (indices.empty()) return;
  std::vector<Runner> runners;
  for (uint32_t i = 0; i < options.model.instances; ++i) runners.push_back(runner_of(new_session()));
  std::vector<ServedFunction> functions;
  for (const size_t index : indices) functions.push_back(describe(*sessions_.front(), index, options));
  scheduler_ = std::make_unique<Scheduler>(std::move(functions), std::move(runners), options.scheduler, name_, registry);
}

void ServedArchive::serve_texts(const ArchiveOptions& options, const TextModel& text_model, Registry& registry) {
  std::vector<std::vector<TextSession>> sessions(options.model.instances);
  const int64_t count = (options.texts + text_model.slots - 1) / text_model.slots;
  for (int64_t i = 0; i < count; ++i) {
    for (auto& of_instance : sessions) {  // sessions are spread over the instances in this order
      deploy::Session& session = new_session();
      of_instance.push_back({runner_of(session), [&session] { session.reset(); }});
      if (i == 0) warm_up(text_model, of_instance.back());
    }
  }
  generator_ = std::make_unique<TextGenerator>(text_model, std::move(sessions), options.scheduler.queue_limit, name_, registry);
  report_ += cat(name_, " generates text: prompts of up to ", text_model.max_prompt, " tokens, ", count * text_model.slots,
                 " texts at once in an instance, ", text_model.slots == 1 ? "" : "up to ", text_model.slots, " in a call\n");
}

ServedFunction ServedArchive::describe(deploy::Session& session, size_t index, const ArchiveOptions& options) {
  const deploy::Function& function = model_->functions()[index];
  ServedFunction served{function, index};
  std::string reason = "requests are not put together";
  const uint32_t dimension = row_dimension(function);
  if (dimension == kNone) {
    reason += ": it has no dimension that is the first of every input and result (dynamic_shapes of ltc.export)";
  } else if (options.max_rows > 1) {
    const int64_t max_rows = std::min(options.max_rows, function.dimensions[dimension].max);
    const std::string dependence =
        function.dimensions[dimension].min > 1 ? "a call has more than one row" : dependence_of_rows(session, index);
    if (dependence.empty()) served.max_rows = max_rows;
    reason = dependence.empty() ? cat("up to ", max_rows, " rows of requests in a call") : reason + ": " + dependence;
  }
  report_ += cat(name_, ".", function.name, ": ", reason, "\n");
  return served;
}

std::map<std::string, ServedModel> ServedArchive::models() {
  std::map<std::string, ServedModel> models;
  if (generator_) models[name_].generator = generator_.get();
  if (!scheduler_) return models;
  const auto& functions = scheduler_->functions();
  for (size_t i = 0; i < functions.size(); ++i) {
    models[name_ + "." + functions[i].name] = {scheduler_.get(), i, nullptr};
    if (functions.size() == 1 || functions[i].name == "forward") models[name_] = {scheduler_.get(), i, generator_.get()};
  }
  return models;
}

bool ServedArchive::drain(Clock::time_point until) {
  return (!scheduler_ || scheduler_->drain(until)) && (!generator_ || generator_->drain(until));
}

}  // namespace ltc::serve
