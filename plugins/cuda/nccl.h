// Collectives between processes, by NCCL.
#pragma once
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cuda/library.h"
#include "cuda/library_call.h"
#include "cuda/nccl_api.h"
#include "device/driver.h"
#include "kernels/fuse/collective.h"

namespace ltc::cuda {

struct NcclApi {
#define LTC_MEMBER(name) decltype(&nccl::name) name = nullptr;
  LTC_NCCL_FUNCTIONS(LTC_MEMBER)
#undef LTC_MEMBER

  // Null where there is no NCCL 2 with these functions.
  static std::unique_ptr<const NcclApi> load(const SearchPath& path);
  void check(nccl::Result result, const char* what) const;
};

// One rank of a group. Any thread.
class Communicator {
 public:
  // With the device's context current. Returns when all ranks have joined; throws TIMEOUT where rank 0 does not.
  Communicator(const NcclApi& api, const ltc_group_args& args);
  ~Communicator() { abort("the group has ended"); }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Submits a collective of one buffer into another.
  void launch(const kernels::Collective& what, const void* from, void* to, CUstream stream) const;

  // NCCL's kernels then end, with any results.
  void abort(const std::string& why) noexcept;
  void require_alive() const;  // throws where it was aborted
  // The same, for work that is not over. Aborts where NCCL says that it failed, or where the work has waited for too long.
  void check(std::chrono::steady_clock::time_point submitted);

 private:
  std::string name() const { return "rank " + std::to_string(rank_) + " of " + std::to_string(size_); }
  void exchange(const kernels::Collective& what, const void* from, void* to, CUstream stream) const;

  const NcclApi& api_;
  const std::chrono::nanoseconds timeout_;
  const uint32_t rank_, size_;
  nccl::Comm comm_ = nullptr;
  std::atomic<bool> aborted_{false};
  mutable std::mutex lock_;  // guards what follows
  std::string why_;
};

// The groups that a device has joined, by number. Any thread.
class Communicators {
 public:
  explicit Communicators(const NcclApi* api) : api_(api) {}  // null: there is no NCCL

  // With the device's context current. Ends with what is returned, or with the last event of its work.
  std::unique_ptr<device::Group> join(const ltc_group_args& args);
  bool has(int64_t group) const { return find(group) != nullptr; }
  std::shared_ptr<Communicator> find(int64_t group) const;  // null where there is none

  // The group is looked up when it is launched: an executable may be of an earlier process.
  std::shared_ptr<const LibraryCall> call(const kernels::Collective& what) const;

 private:
  class Member;
  class Call;

  const NcclApi* const api_;
  mutable std::mutex lock_;
  std::map<int64_t, std::weak_ptr<Communicator>> groups_;
};

// The end of work that has collectives: with their errors.
class CollectiveEvent : public device::Event {
 public:
  CollectiveEvent(device::EventRef work, std::vector<std::shared_ptr<Communicator>> groups)
      : work_(std::move(work)), groups_(std::move(groups)) {}
  bool is_over() override;
  void wait() override;

 private:
  const device::EventRef work_;
  const std::vector<std::shared_ptr<Communicator>> groups_;
  const std::chrono::steady_clock::time_point submitted_ = std::chrono::steady_clock::now();
};

}  // namespace ltc::cuda
