#include "device/faults.h"

namespace ltc::device {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kNothing = 0;  // no run has the number 0

bool is_over(const EventRef& copy) {
  try {
    return !copy || copy->is_over();
  } catch (const Failure&) {
    return true;
  }
}

class FaultEvent : public Event {
 public:
  FaultEvent(FaultWords& words, uint64_t codes, std::shared_ptr<const CompiledPlan> compiled_plan)
      : words_(words), codes_(codes), compiled_plan_(std::move(compiled_plan)), word_(words.take()) {}
  ~FaultEvent() override { words_.give(word_, std::move(copy_)); }

  uint64_t* word() const { return word_; }
  void begin(EventRef copy) { copy_ = std::move(copy); }

  bool is_over() override {
    if (!copy_->is_over()) return false;
    check();
    return true;
  }
  void wait() override {
    copy_->wait();
    check();
  }

 private:
  void check() const {
    const uint64_t number = *word_ - codes_;
    if (number >= compiled_plan_->checks.size()) return;
    const auto& [source, size] = compiled_plan_->checks[number];
    throw Failure({LTC_OUT_OF_RANGE, source, "an element of the index is not in [0, " + std::to_string(size) + ")",
                   compiled_plan_->good_outputs});
  }

  FaultWords& words_;
  const uint64_t codes_;
  const std::shared_ptr<const CompiledPlan> compiled_plan_;
  uint64_t* const word_;
  EventRef copy_;
};

}  // namespace

FaultWords::~FaultWords() {
  for (void* page : pages_) driver_.release_pinned(page);
}

uint64_t* FaultWords::take() {
  const std::lock_guard guard(lock_);
  if (free_.empty() || !is_over(free_.front().second)) {
    pages_.reserve(pages_.size() + 1);
    auto* words = static_cast<uint64_t*>(driver_.allocate_pinned(kPageBytes));
    pages_.push_back(words);
    for (size_t i = 0; i < kPageBytes / sizeof *words; ++i) free_.emplace_front(words + i, nullptr);
  }
  uint64_t* word = free_.front().first;
  free_.pop_front();
  return word;
}

void FaultWords::give(uint64_t* word, EventRef copy) noexcept {
  try {
    const std::lock_guard guard(lock_);
    free_.emplace_back(word, std::move(copy));
  } catch (...) {  // no memory for the list: the word is not used again
  }
}

Faults::~Faults() {
  if (word_) driver_.release(word_);
}

EventRef Faults::submit(LoadedPlan& loaded_plan, Run& run, std::shared_ptr<const CompiledPlan> compiled_plan,
                        size_t launches_to_await) {
  if (compiled_plan->checks.empty()) return loaded_plan.submit(run);
  if (!word_) {
    word_ = driver_.allocate(sizeof kNothing);
    driver_.write(word_, 0, &kNothing, sizeof kNothing)->wait();
  }
  if (++run_ == 0) ++run_;
  run.faults = word_;
  run.fault_codes = uint64_t{run_} << 32;
  const auto event = std::make_shared<FaultEvent>(words_, run.fault_codes, std::move(compiled_plan));
  run.fault_word = event->word();
  if (launches_to_await > 0) run.end = launches_to_await;
  event->begin(loaded_plan.submit(run));
  if (launches_to_await == 0) return event;
  event->wait();
  run.begin = std::exchange(run.end, SIZE_MAX);
  run.fault_word = nullptr;
  return loaded_plan.submit(run);
}

}  // namespace ltc::device
