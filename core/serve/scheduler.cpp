#include "core/serve/scheduler.h"

namespace ltc::serve {
namespace {

bool same_rows(const ServedFunction& function, const Request& a, const Request& b) {
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    if (!std::ranges::equal(a.inputs[i].sizes.subspan(1), b.inputs[i].sizes.subspan(1))) return false;
  }
  return true;
}

// The inputs of requests one after the other, in memory of the call's.
struct Gathered {
  std::vector<std::string> data;
  std::vector<std::vector<int64_t>> sizes;
  std::vector<TensorView> views;

  Gathered(std::span<const RequestRef> batch, int64_t rows) {
    const size_t count = batch.front()->inputs.size();
    data.resize(count), sizes.resize(count);
    for (size_t i = 0; i < count; ++i) {
      for (const RequestRef& request : batch)
        data[i].append(static_cast<const char*>(request->inputs[i].data), request->inputs[i].size_bytes);
      sizes[i].assign(batch.front()->inputs[i].sizes.begin(), batch.front()->inputs[i].sizes.end());
      sizes[i][0] = rows;
      views.push_back({batch.front()->inputs[i].dtype, sizes[i], data[i].data(), data[i].size()});
    }
  }
};

}  // namespace

Scheduler::Scheduler(std::vector<ServedFunction> functions, std::vector<Runner> runners, const SchedulerOptions& options,
                     const std::string& name, Registry& registry)
    : functions_(std::move(functions)),
      options_(options),
      metrics_(name, registry),
      run_seconds_(
          registry.histogram("ltc_serve_run_seconds", "How long a call of the model took.", kSecondsBounds, {{"model", name}})),
      rows_(registry.histogram("ltc_serve_call_rows", "Rows of a call of the model.", kRowsBounds, {{"model", name}})),
      queue_(options.queue_limit, metrics_) {
  for (Runner& runner : runners) workers_.push_back(std::make_unique<Worker>(std::move(runner)));
  for (const auto& worker : workers_) worker->thread.start([this, &worker = *worker] { work(worker); });
}

bool Scheduler::drain(Clock::time_point until) {
  queue_.close();
  return all_end_by(workers_, until);
}

void Scheduler::work(Worker& worker) {
  while (true) {
    const std::vector<RequestRef> batch = take_batch();
    if (batch.empty()) return;
    worker.timer.begin();
    run_batch(worker, batch);
    worker.timer.end();
  }
}

// True where the request is not to be begun; it is done then.
bool Scheduler::is_expired(Request& request) {
  request.failure = queue_.expiry(request);
  if (request.failure) finish(request);
  return request.failure.has_value();
}

// Empty where the queue is closed and empty.
std::vector<RequestRef> Scheduler::take_batch() {
  RequestRef first;
  do {
    first = queue_.take();
    if (!first) return {};
  } while (is_expired(*first));
  std::vector<RequestRef> batch{first};
  const ServedFunction& function = functions_[first->function];
  const Clock::time_point until = std::min(first->submitted + options_.delay, first->deadline);
  int64_t rows = first->rows;
  while (rows < function.max_rows) {
    RequestRef next = queue_.take_if(
        [&](const Request& other) {
          return other.function == first->function && rows + other.rows <= function.max_rows &&
                 same_rows(function, *first, other);
        },
        until);
    if (!next) break;
    if (is_expired(*next)) continue;
    rows += next->rows;
    batch.push_back(std::move(next));
  }
  return batch;
}

// One request that the model refuses does not fail those beside it. A lost device is opened again by the next call.
void Scheduler::run_batch(Worker& worker, const std::vector<RequestRef>& batch) {
  const auto attempt = [&](std::span<const RequestRef> calls) { return failure_of([&] { run_call(worker, calls); }); };
  std::optional<Failure> failure = attempt(batch);
  const bool retries = failure && (batch.size() > 1 || failure->code == Code::kDeviceLost);
  for (size_t i = 0; i < batch.size(); ++i) {
    batch[i]->failure = retries ? attempt(std::span(batch).subspan(i, 1)) : failure;
    finish(*batch[i]);
  }
}

void Scheduler::run_call(Worker& worker, std::span<const RequestRef> batch) {
  const ServedFunction& function = functions_[batch.front()->function];
  const bool is_alone = batch.size() == 1;
  int64_t rows = 0;
  for (const RequestRef& request : batch) rows += request->rows;
  std::optional<Gathered> gathered;
  if (!is_alone) gathered.emplace(batch, rows);

  const std::vector<TensorView>& inputs = is_alone ? batch.front()->inputs : gathered->views;
  const std::vector<TypeId> types = deploy::results_of_call(function, inputs);
  std::vector<std::string> data;
  std::vector<TensorView> results;
  for (const TypeId type : types) data.emplace_back(type_of(type).size_bytes(), '\0');
  for (size_t i = 0; i < types.size(); ++i) results.push_back(deploy::view_of(types[i], data[i].data()));

  const Clock::time_point begin = Clock::now();
  worker.run(function.index, inputs, results);
  run_seconds_.observe(seconds(Clock::now() - begin));
  rows_.observe(static_cast<double>(rows));

  int64_t row = 0;
  for (const RequestRef& request : batch) {
    request->results.clear(), request->result_sizes.clear();
    for (size_t i = 0; i < data.size(); ++i) {
      request->result_sizes.push_back(type_of(types[i]).sizes);
      if (is_alone) {
        request->results.push_back(std::move(data[i]));
        continue;
      }
      const size_t row_bytes = data[i].size() / static_cast<size_t>(rows);
      request->result_sizes.back()[0] = request->rows;
      request->results.push_back(
          data[i].substr(static_cast<size_t>(row) * row_bytes, static_cast<size_t>(request->rows) * row_bytes));
    }
    row += request->rows;
  }
}

void Scheduler::finish(Request& request) {
  metrics_.end(request.failure, request.submitted);
  if (request.done) request.done();
}

}  // namespace ltc::serve
