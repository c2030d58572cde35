// The Work objects that the process group returns for its collectives and messages.
#pragma once

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <memory>
#include <utility>
#include <vector>

namespace ltc {
class Event;
}

namespace ltc::collectives {

using Tensors = std::vector<at::Tensor>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

// A collective that is recorded. Ops that are recorded later run behind it, as on a stream, so wait() has nothing to do. To ask
// whether it is completed, or to wait with a timeout, ends its step.
//
// Lives while it is recorded, for the profiler's sake: then recorded() is to be called.
class RecordedWork : public c10d::Work {
 public:
  RecordedWork(c10d::OpType type, const Tensors& inputs);
  void recorded(Tensors results);

  bool isCompleted() override;
  bool isSuccess() const override { return true; }        // as far as is known: errors are in the results
  bool wait(std::chrono::milliseconds timeout) override;  // throws when the time is over, and the collective's error
  void synchronize() override {}
  void abort() override;
  Tensors result() override { return results_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

 private:
  Tensors results_;
  std::shared_ptr<Event> event_;  // behind the collective; null if it has no results
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

// A send, or a receive, whose result comes to the device when somebody waits for it. Keeps the memory that Gloo works on.
class Message : public c10d::Work {
 public:
  Message(WorkPtr work, at::Tensor on_cpu, at::Tensor received = {})
      : work_(std::move(work)), on_cpu_(std::move(on_cpu)), received_(std::move(received)) {}

  bool isCompleted() override { return work_->isCompleted(); }
  bool isSuccess() const override { return work_->isSuccess(); }
  int sourceRank() const override { return work_->sourceRank(); }
  Tensors result() override { return received_.defined() ? Tensors{received_} : Work::result(); }
  void abort() override { work_->abort(); }
  bool wait(std::chrono::milliseconds timeout) override;

 private:
  WorkPtr work_;
  at::Tensor on_cpu_;    // until it is waited for
  at::Tensor received_;  // on the device; undefined for a send
};

// All that was begun together.
class Together : public c10d::Work {
 public:
  explicit Together(std::vector<WorkPtr> works) : works_(std::move(works)) {}

  bool isCompleted() override;
  bool isSuccess() const override;
  void abort() override;
  bool wait(std::chrono::milliseconds timeout) override;

 private:
  const std::vector<WorkPtr> works_;
};

}  // namespace ltc::collectives
