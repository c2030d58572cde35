#include "core/serve/text_generator.h"

#include <algorithm>

#include "core/base/log.h"
#include "core/base/number.h"

namespace ltc::serve {
namespace {

const Type& type_of_tensor(const deploy::NamedType& tensor) { return type_of(tensor.type); }

constexpr int64_t kMostSlots = 65536;

bool is_tokens(const deploy::NamedType& tensor, size_t rank) {
  return type_of_tensor(tensor).dtype == DType::kI64 && type_of_tensor(tensor).sizes.size() == rank;
}

bool is_one(const deploy::NamedType& tensor) {
  return is_tokens(tensor, 1) && (tensor.sizes.empty() || tensor.sizes[0].dimensions.empty()) &&
         type_of_tensor(tensor).sizes[0] == 1;
}

// The dimension that a size is; kNone for a fixed size.
uint32_t dimension_of(const deploy::NamedType& tensor, size_t dim) {
  return tensor.sizes.empty() ? kNone : tensor.sizes[dim].plain_dimension();
}

bool is_prefill(const deploy::Function& function) {
  const auto& inputs = function.inputs;
  if (inputs.size() < 2 || inputs.size() > 3 || function.results.size() != 1) return false;
  if (!is_tokens(inputs[0], 2) || dimension_of(inputs[0], 0) != kNone || type_of_tensor(inputs[0]).sizes[0] != 1) return false;
  return std::all_of(inputs.begin() + 1, inputs.end(), is_one) && is_one(function.results[0]);
}

bool is_decode(const deploy::Function& function, size_t inputs) {
  if (function.inputs.size() != inputs || function.results.size() != 1) return false;
  const auto is_part = [&](const deploy::NamedType& tensor) {
    return is_tokens(tensor, 1) && dimension_of(tensor, 0) == dimension_of(function.inputs[0], 0);
  };
  if (inputs == 2) return std::ranges::all_of(function.inputs, is_one) && is_one(function.results[0]);
  const uint32_t texts = is_tokens(function.inputs[0], 1) ? dimension_of(function.inputs[0], 0) : kNone;
  return texts != kNone && function.dimensions[texts].min <= 1 && function.dimensions[texts].max < kMostSlots &&
         std::ranges::all_of(function.inputs, is_part) && is_part(function.results[0]);
}

int64_t positions_of(const std::string& text) {
  int64_t value = 0;
  if (!read_number(text, value) || value < 1)
    fail(Code::kUnsupported, "its metadata has max_positions = ", text, ", which is to be a number from 1");
  return value;
}

// A tensor of the numbers, of one dim or of two of which the first is 1.
struct Numbers {
  std::vector<int64_t> values;
  std::vector<int64_t> sizes;

  explicit Numbers(std::vector<int64_t> given, bool is_row = false) : values(std::move(given)) {
    if (is_row) sizes.push_back(1);
    sizes.push_back(static_cast<int64_t>(values.size()));
  }
  TensorView view() { return {DType::kI64, sizes, values.data(), values.size() * sizeof(int64_t)}; }
};

}  // namespace

std::optional<TextModel> find_text_model(const deploy::Archive& archive) {
  const std::vector<deploy::Function>& functions = archive.functions();
  const auto named = [&](std::string_view name) { return std::ranges::find(functions, name, &deploy::Function::name); };
  const auto prefill = named("prefill"), decode = named("decode");
  if (prefill == functions.end() || decode == functions.end()) return std::nullopt;
  if (!is_prefill(*prefill) || !is_decode(*decode, prefill->inputs.size()))
    fail(Code::kUnsupported, "text is generated with prefill(tokens: i64[1,P], length: i64[1]) -> i64[1] and decode(token: ",
         "i64[1], position: i64[1]) -> i64[1], or with slots: prefill(..., slot: i64[1]) and decode(token: i64[B], position: "
         "i64[B], ",
         "slot: i64[B]) -> i64[B] with a dimension B from 1 to the number of slots. These are ", prefill->signature(), " and ",
         decode->signature());
  TextModel model;
  model.prefill = static_cast<size_t>(prefill - functions.begin());
  model.decode = static_cast<size_t>(decode - functions.begin());
  model.takes_slots = prefill->inputs.size() == 3;
  if (model.takes_slots) model.slots = decode->dimensions[dimension_of(decode->inputs[0], 0)].max;
  const deploy::NamedType& tokens = prefill->inputs[0];
  const uint32_t length = dimension_of(tokens, 1);
  model.min_prompt = length == kNone ? type_of_tensor(tokens).sizes[1] : prefill->dimensions[length].min;
  model.max_prompt = length == kNone ? type_of_tensor(tokens).sizes[1] : prefill->dimensions[length].max;
  if (const std::string* text = archive.find_metadata("max_positions")) model.max_positions = positions_of(*text);
  return model;
}

TextRequest::News TextRequest::take_news() {
  std::lock_guard lock(mutex_);
  return std::exchange(news_, {});
}

void TextRequest::add(int64_t token) {
  {
    std::lock_guard lock(mutex_);
    news_.tokens.push_back(token);
  }
  if (changed) changed();
}

void TextRequest::end(TextEnd how) {
  {
    std::lock_guard lock(mutex_);
    news_.end = std::move(how);
  }
  if (changed) changed();
}

TextGenerator::TextGenerator(const TextModel& model, std::vector<std::vector<TextSession>> sessions, size_t queue_limit,
                             const std::string& name, Registry& registry)
    : model_(model),
      metrics_(name, registry),
      first_token_seconds_(registry.histogram("ltc_serve_time_to_first_token_seconds",
                                              "From the arrival of a text until its first token.", kSecondsBounds,
                                              {{"model", name}})),
      token_seconds_(registry.histogram("ltc_serve_inter_token_latency_seconds", "From a token of a text to its next.",
                                        kSecondsBounds, {{"model", name}})),
      texts_of_step_(registry.histogram("ltc_serve_decode_texts", "Texts of a call of decode.", kRowsBounds, {{"model", name}})),
      tokens_(registry.counter("ltc_serve_generated_tokens_total", "Tokens that were generated.", {{"model", name}})),
      running_(registry.gauge("ltc_serve_running_texts", "Texts that have begun.", {{"model", name}})),
      queue_(queue_limit, metrics_) {
  for (auto& of_worker : sessions) {
    auto& worker = *workers_.emplace_back(std::make_unique<Worker>());
    for (TextSession& session : of_worker)
      worker.sessions.push_back({std::move(session), std::vector<Slot>(static_cast<size_t>(model.slots)), false});
  }
  for (const auto& worker : workers_) worker->thread.start([this, &worker = *worker] { work(worker); });
}

void TextGenerator::cancel(TextRequest& text) {
  text.cancel();
  queue_.cancel(text);
}

bool TextGenerator::drain(Clock::time_point until) {
  queue_.close();
  return all_end_by(workers_, until);
}

int64_t TextGenerator::Session::running() const {
  return std::ranges::count_if(slots, [](const Slot& slot) { return slot.text != nullptr; });
}

void TextGenerator::work(Worker& worker) {
  while (take_texts(worker)) {
    for (Session& session : worker.sessions) step(worker, session);
  }
}

// Gives free slots to texts that wait; waits for one where none runs. False at the end.
bool TextGenerator::take_texts(Worker& worker) {
  int64_t running = 0;
  for (const Session& session : worker.sessions) running += session.running();
  for (Session& session : worker.sessions) {
    if (session.is_damaged && session.running() == 0) mend(session);
    for (size_t slot = 0; slot < session.slots.size() && !session.is_damaged; ++slot) {
      while (!session.slots[slot].text) {
        const TextRequestRef text = queue_.take(running > 0 ? Clock::time_point::min() : Clock::time_point::max());
        if (!text) return running > 0;
        const bool others_run = running > 0;
        begin(worker, session, slot, text);
        if (others_run) return true;  // which wait for one prompt between two of their tokens
        if (session.slots[slot].text) ++running;
        if (session.is_damaged) break;
      }
    }
  }
  return true;
}

void TextGenerator::begin(Worker& worker, Session& session, size_t index, const TextRequestRef& text) {
  running_.add(1);
  Slot& slot = session.slots[index];
  slot = {text, 0, static_cast<int64_t>(text->prompt.size()), text->max_tokens, text->submitted};
  if (auto failure = queue_.expiry(*text)) return end(slot, {{}, std::move(failure)});
  std::vector<int64_t> prompt = text->prompt;
  prompt.resize(static_cast<size_t>(std::max(model_.min_prompt, slot.position)));
  Numbers tokens(std::move(prompt), true), length({slot.position}), place({static_cast<int64_t>(index)}), next({0});
  std::vector<TensorView> inputs{tokens.view(), length.view()};
  if (model_.takes_slots) inputs.push_back(place.view());
  const std::vector<TensorView> results{next.view()};
  worker.timer.begin();
  auto failure = failure_of([&] { session.model.run(model_.prefill, inputs, results); });
  worker.timer.end();
  if (failure) {
    session.is_damaged = true;
    return end(slot, {{}, std::move(failure)});
  }
  first_token_seconds_.observe(seconds(Clock::now() - text->submitted));
  add_token(slot, next.values[0]);
}

// The next token of each text.
void TextGenerator::step(Worker& worker, Session& session) {
  end_those_given_up(session);
  std::vector<Slot*> texts;
  std::vector<int64_t> token, position, slot;
  for (size_t i = 0; i < session.slots.size(); ++i) {
    if (!session.slots[i].text) continue;
    texts.push_back(&session.slots[i]);
    token.push_back(session.slots[i].token);
    position.push_back(session.slots[i].position);
    slot.push_back(static_cast<int64_t>(i));
  }
  if (texts.empty()) return;
  Numbers tokens(token), positions(position), slots(slot), next(token);
  std::vector<TensorView> inputs{tokens.view(), positions.view()};
  if (model_.takes_slots) inputs.push_back(slots.view());
  const std::vector<TensorView> results{next.view()};
  worker.timer.begin();
  const auto failure = failure_of([&] { session.model.run(model_.decode, inputs, results); });
  worker.timer.end();
  texts_of_step_.observe(static_cast<double>(texts.size()));
  session.is_damaged |= failure.has_value();
  for (size_t i = 0; i < texts.size(); ++i) {
    if (failure) {
      end(*texts[i], {{}, failure});
      continue;
    }
    ++texts[i]->position;
    token_seconds_.observe(seconds(Clock::now() - texts[i]->last));
    add_token(*texts[i], next.values[i]);
  }
}

void TextGenerator::end_those_given_up(Session& session) {
  for (Slot& slot : session.slots) {
    if (!slot.text) continue;
    if (slot.text->is_cancelled()) {
      end(slot, {{}, Failure{Code::kCancelled, "the client gave the text up"}});
    } else if (Clock::now() >= slot.text->deadline) {
      end(slot, {{}, Failure{Code::kTimeout, cat("the deadline passed after ", slot.text->max_tokens - slot.left, " tokens")}});
    }
  }
}

void TextGenerator::add_token(Slot& slot, int64_t token) {
  tokens_.add();
  slot.token = token;
  slot.last = Clock::now();
  --slot.left;
  slot.text->add(token);
  const auto& stops = slot.text->stop_tokens;
  if (std::ranges::find(stops, token) != stops.end()) return end(slot, {FinishReason::kStop, {}});
  if (slot.left == 0 || slot.position + 1 >= model_.max_positions) end(slot, {FinishReason::kLength, {}});
}

void TextGenerator::end(Slot& slot, TextEnd how) {
  const TextRequestRef text = std::exchange(slot.text, nullptr);
  running_.add(-1);
  metrics_.end(how.failure, text->submitted);
  text->end(std::move(how));
}

// After a call that failed, a part of the state can be lost.
void TextGenerator::mend(Session& session) {
  const auto failure = failure_of(session.model.reset);
  if (failure) log::warn("a session could not be reset after a failure: ", failure->message);
  session.is_damaged = false;
}

void warm_up(const TextModel& model, const TextSession& session) {
  if (!model.takes_slots) return;
  std::vector<int64_t> zeros;
  std::vector<int64_t> every_slot;
  while (static_cast<int64_t>(zeros.size()) < model.slots) {
    every_slot.push_back(static_cast<int64_t>(zeros.size()));
    zeros.push_back(0);
    Numbers tokens(zeros), positions(zeros), slots(every_slot), next(zeros);
    session.run(model.decode, std::vector{tokens.view(), positions.view(), slots.view()}, std::vector{next.view()});
  }
  session.reset();
}

}  // namespace ltc::serve
