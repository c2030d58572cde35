#include "cuda/nccl.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "kernels/graph/dtype.h"

namespace ltc::cuda {
namespace {

using kernels::Collective;
using kernels::CollectiveKind;

constexpr auto kGlance = std::chrono::microseconds(100);

nccl::DataType type_of(ltc_dtype dtype) {
  switch (dtype) {
    case LTC_U8: return nccl::kUint8;
    case LTC_I8: return nccl::kInt8;
    case LTC_I32: return nccl::kInt32;
    case LTC_I64: return nccl::kInt64;
    case LTC_F16: return nccl::kFloat16;
    case LTC_BF16: return nccl::kBfloat16;
    case LTC_F64: return nccl::kFloat64;
    default: return nccl::kFloat32;
  }
}

nccl::RedOp op_of(kernels::Reduction reduction) {
  switch (reduction) {
    case kernels::Reduction::kProduct: return nccl::kProd;
    case kernels::Reduction::kMin: return nccl::kMin;
    case kernels::Reduction::kMax: return nccl::kMax;
    default: return nccl::kSum;
  }
}

size_t bytes_of(ltc_dtype dtype, int64_t count) {
  return static_cast<size_t>(count) * static_cast<size_t>(kernels::bits_of(dtype)) / 8;
}

// Rank 0 makes the id, and all get it.
nccl::UniqueId shared_id(const NcclApi& api, const ltc_group_args& args) {
  const ltc_store& store = *args.store;
  const ltc_string key = plugin::literal("nccl id");
  nccl::UniqueId id{};
  if (args.rank == 0) {
    api.check(api.ncclGetUniqueId(&id), "ncclGetUniqueId");
    const ltc_string value{id.internal, sizeof id.internal};
    if (!store.set(store.store, &key, &value)) throw Failure(LTC_CANCELLED, "the group's store is gone");
    return id;
  }
  std::string got;
  const ltc_sink sink{&got, [](void* context, const void* data, size_t size) {
                        static_cast<std::string*>(context)->append(static_cast<const char*>(data), size);
                        return true;
                      }};
  const bool is_there = store.get(store.store, &key, args.timeout_ns, &sink);
  if (!is_there || got.size() != sizeof id.internal) throw Failure(LTC_TIMEOUT, "rank 0 has not joined the group");
  std::memcpy(id.internal, got.data(), sizeof id.internal);
  return id;
}

}  // namespace

std::unique_ptr<const NcclApi> NcclApi::load(const SearchPath& path) {
  return load_functions<NcclApi>("libnccl.so.2", path, [](const Library& library, NcclApi& api) {
#define LTC_RESOLVE(name) library.resolve(#name, api.name);
    LTC_NCCL_FUNCTIONS(LTC_RESOLVE)
#undef LTC_RESOLVE
  });
}

void NcclApi::check(nccl::Result result, const char* what) const {
  if (result == nccl::kSuccess || result == nccl::kInProgress) return;
  const char* text = ncclGetErrorString(result);
  throw Failure(LTC_INTERNAL,
                std::string(what) + " answered " + std::to_string(result) + (text ? " (" + std::string(text) + ")" : ""));
}

// ---- one rank

Communicator::Communicator(const NcclApi& api, const ltc_group_args& args)
    : api_(api),
      timeout_(static_cast<int64_t>(std::min<uint64_t>(args.timeout_ns, INT64_MAX))),
      rank_(args.rank),
      size_(args.size) {
  const nccl::UniqueId id = shared_id(api, args);
  api.check(api.ncclCommInitRank(&comm_, static_cast<int>(size_), id, static_cast<int>(rank_)), "ncclCommInitRank");
}

void Communicator::require_alive() const {
  if (!aborted_) return;
  const std::lock_guard guard(lock_);
  throw Failure(LTC_CANCELLED, name() + ": " + why_);
}

void Communicator::launch(const Collective& what, const void* from, void* to, CUstream stream) const {
  require_alive();
  const auto count = static_cast<size_t>(what.count), bytes = bytes_of(what.dtype, what.count);
  switch (what.kind) {
    case CollectiveKind::kAllReduce:
      return api_.check(api_.ncclAllReduce(from, to, count, type_of(what.dtype), op_of(what.reduction), comm_, stream),
                        "ncclAllReduce");
    case CollectiveKind::kBroadcast:
      return api_.check(api_.ncclBroadcast(from, to, bytes, nccl::kInt8, static_cast<int>(what.root), comm_, stream),
                        "ncclBroadcast");
    case CollectiveKind::kAllGather:
      return api_.check(api_.ncclAllGather(from, to, bytes, nccl::kInt8, comm_, stream), "ncclAllGather");
    case CollectiveKind::kReduceScatter:
      return api_.check(api_.ncclReduceScatter(from, to, count, type_of(what.dtype), op_of(what.reduction), comm_, stream),
                        "ncclReduceScatter");
    case CollectiveKind::kAllToAll: return exchange(what, from, to, stream);
  }
}

void Communicator::exchange(const Collective& what, const void* from, void* to, CUstream stream) const {
  if (what.to.size() != size_ || what.from.size() != size_) throw Failure(LTC_INVALID_ARGUMENT, "not as many parts as ranks");
  const auto* next = static_cast<const char*>(from);
  auto* place = static_cast<char*>(to);
  api_.check(api_.ncclGroupStart(), "ncclGroupStart");
  for (uint32_t rank = 0; rank < size_; ++rank) {
    const size_t given = bytes_of(what.dtype, what.to[rank]), taken = bytes_of(what.dtype, what.from[rank]);
    if (given > 0) api_.check(api_.ncclSend(next, given, nccl::kInt8, static_cast<int>(rank), comm_, stream), "ncclSend");
    if (taken > 0) api_.check(api_.ncclRecv(place, taken, nccl::kInt8, static_cast<int>(rank), comm_, stream), "ncclRecv");
    next += given;
    place += taken;
  }
  api_.check(api_.ncclGroupEnd(), "ncclGroupEnd");
}

void Communicator::abort(const std::string& why) noexcept {
  {
    const std::lock_guard guard(lock_);
    if (aborted_) return;
    why_ = why;
    aborted_ = true;
  }
  if (comm_) api_.ncclCommAbort(comm_);
}

void Communicator::check(std::chrono::steady_clock::time_point submitted) {
  require_alive();
  nccl::Result error = nccl::kSuccess;
  const nccl::Result asked = api_.ncclCommGetAsyncError(comm_, &error);
  if (asked == nccl::kSuccess && error != nccl::kSuccess && error != nccl::kInProgress)
    abort(std::string("a collective failed: ") + api_.ncclGetErrorString(error));
  if (std::chrono::steady_clock::now() - submitted > timeout_) {
    abort("another rank did not take part");
    throw Failure(LTC_TIMEOUT, name() + ": another rank did not take part");
  }
  require_alive();
}

// ---- those of a device

class Communicators::Member : public device::Group {
 public:
  Member(Communicators& all, int64_t number, std::shared_ptr<Communicator> communicator)
      : all_(all), number_(number), communicator_(std::move(communicator)) {}
  ~Member() override {
    {
      const std::lock_guard guard(all_.lock_);
      all_.groups_.erase(number_);
    }
    communicator_->abort("the group has ended");
  }
  void abort() noexcept override { communicator_->abort("the group was aborted"); }

 private:
  Communicators& all_;
  const int64_t number_;
  const std::shared_ptr<Communicator> communicator_;
};

class Communicators::Call : public LibraryCall {
 public:
  Call(const Communicators& all, Collective what) : all_(all), what_(std::move(what)) {}
  void launch(std::span<const CUdeviceptr> buffers, CUstream stream) const override {
    const std::shared_ptr<Communicator> group = all_.find(what_.group);
    if (!group) throw Failure(LTC_CANCELLED, "the device is in no group " + std::to_string(what_.group));
    group->launch(what_, reinterpret_cast<const void*>(buffers[0]), reinterpret_cast<void*>(buffers[1]), stream);
  }

 private:
  const Communicators& all_;
  const Collective what_;
};

std::unique_ptr<device::Group> Communicators::join(const ltc_group_args& args) {
  if (!api_) throw Failure(LTC_UNSUPPORTED, "there is no libnccl.so.2");
  auto communicator = std::make_shared<Communicator>(*api_, args);
  {
    const std::lock_guard guard(lock_);
    groups_[args.number] = communicator;
  }
  return std::make_unique<Member>(*this, args.number, std::move(communicator));
}

std::shared_ptr<Communicator> Communicators::find(int64_t group) const {
  const std::lock_guard guard(lock_);
  const auto found = groups_.find(group);
  return found == groups_.end() ? nullptr : found->second.lock();
}

std::shared_ptr<const LibraryCall> Communicators::call(const Collective& what) const {
  return std::make_shared<const Call>(*this, what);
}

// ---- events

bool CollectiveEvent::is_over() {
  const bool is_over = work_->is_over();
  for (const auto& group : groups_) {
    is_over ? group->require_alive() : group->check(submitted_);
  }
  return is_over;
}

void CollectiveEvent::wait() {
  while (!is_over()) std::this_thread::sleep_for(kGlance);
}

}  // namespace ltc::cuda
