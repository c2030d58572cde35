#include "cuda/blas.h"

#include <algorithm>
#include <type_traits>

#include "kernels/graph/dtype.h"

namespace ltc::cuda {
namespace {

struct TypeRow {
  ltc_dtype dtype;
  lt::DataType data;
  lt::ComputeType compute;
  lt::DataType scale;
};

constexpr TypeRow kTypes[] = {
    {LTC_F32, lt::kR32F, lt::kCompute32F, lt::kR32F},          {LTC_F64, lt::kR64F, lt::kCompute64F, lt::kR64F},
    {LTC_F16, lt::kR16F, lt::kCompute32F, lt::kR32F},          {LTC_BF16, lt::kR16BF, lt::kCompute32F, lt::kR32F},
    {LTC_F8_E4M3FN, lt::kR8FE4M3, lt::kCompute32F, lt::kR32F}, {LTC_F8_E5M2, lt::kR8FE5M2, lt::kCompute32F, lt::kR32F},
};

const TypeRow* find_type(ltc_dtype dtype) {
  const auto found = std::ranges::find(kTypes, dtype, &TypeRow::dtype);
  return found == std::end(kTypes) ? nullptr : found;
}

// The alignment of blocks of memory, so the largest that can be promised.
constexpr int64_t kBlockAlignment = 256;

// The largest power of two up to that which divides all addresses of the operand's matrices.
uint32_t alignment(int64_t element_bytes, int64_t offset, int64_t batch_stride) {
  const int64_t bits = kBlockAlignment | offset * element_bytes | batch_stride * element_bytes;
  return static_cast<uint32_t>(bits & -bits);
}

// A matrix seen column-major is its transpose, unless it lies column-major.
BlasOperand operand(const kernels::StridedMatrix& matrix, int64_t rows, int64_t columns, ltc_dtype dtype) {
  const auto seen = kernels::blas_matrix(matrix, rows, columns);
  if (!seen) throw Failure(LTC_INTERNAL, "an operand of a product does not lie as BLAS takes it");
  const auto tall = static_cast<uint64_t>(seen->row_major ? columns : rows);
  const auto wide = static_cast<uint64_t>(seen->row_major ? rows : columns);
  const int64_t element_bytes = kernels::bits_of(dtype) / 8;
  return {dtype,
          tall,
          wide,
          seen->leading,
          matrix.batch,
          matrix.offset,
          seen->row_major ? lt::kAsIs : lt::kTransposed,
          alignment(element_bytes, matrix.offset, matrix.batch)};
}

const void* at(CUdeviceptr buffer, const BlasOperand& operand) {
  return reinterpret_cast<const void*>(buffer + static_cast<uint64_t>(operand.offset * kernels::bits_of(operand.dtype) / 8));
}

}  // namespace

std::unique_ptr<const BlasApi> BlasApi::load(const SearchPath& path, int newest_major) {
  const Library library = Library::open(versions_of("libcublasLt.so", newest_major), path);
  if (!library) return nullptr;
  auto api = std::make_unique<BlasApi>();
#define LTC_RESOLVE(name) library.resolve(#name, api->name);
  LTC_BLAS_FUNCTIONS(LTC_RESOLVE)
#undef LTC_RESOLVE
  return api;
}

void BlasApi::check(lt::Status status, const char* what) const {
  if (status == lt::kSuccess) return;
  throw Failure(LTC_INTERNAL, std::string(what) + " answered status " + std::to_string(status));
}

bool wants_blas(ltc_dtype dtype, int64_t batch, int64_t rows, int64_t columns, int64_t length) {
  const bool fits = std::max({batch, rows, columns, length}) <= INT32_MAX;
  const bool much = std::max({rows, columns, length}) >= 512 || rows * columns * length >= 512;
  return find_type(dtype) && fits && length > 0 && much;
}

BlasCall blas_call(const kernels::Product& product) {
  const auto& [dtype, batch, rows, columns, length, a, b, result, rounds, epilogue, scaled_b] = product;
  const int64_t result_stride = rows * columns;
  return {static_cast<int32_t>(batch),
          scaled_b != 0,
          rounds,
          epilogue,
          operand(b, length, columns, scaled_b ? scaled_b : dtype),
          operand(a, rows, length, dtype),
          {result, static_cast<uint64_t>(columns), static_cast<uint64_t>(rows), columns, result_stride, 0, lt::kAsIs,
           alignment(kernels::bits_of(result) / 8, 0, result_stride)}};
}

// A product ready to be launched.
class Blas::Product : public LibraryCall {
 public:
  Product(const Blas& blas, const BlasCall& call);
  void launch(std::span<const CUdeviceptr> buffers, CUstream stream) const override;

 private:
  template <typename T>
  using Owned = std::unique_ptr<std::remove_pointer_t<T>, lt::Status (*)(T)>;

  Owned<lt::Layout> layout(const BlasOperand& operand) const;
  template <typename Value>
  void describe(lt::DescAttribute attribute, Value value) const;
  void describe_more();
  void set_more_buffers(std::span<const CUdeviceptr> buffers) const;
  void ask();

  const Blas& blas_;
  const BlasCall call_;
  Owned<lt::MatmulDesc> desc_;
  Owned<lt::Layout> first_, second_, result_;
  lt::Heuristic chosen_{};
};

Blas::Blas(const BlasApi& api, CUdeviceptr workspace) : api_(api), workspace_(workspace) {
  api_.check(api_.cublasLtCreate(&handle_), "cublasLtCreate");
}

Blas::~Blas() {
  products_.clear();
  api_.cublasLtDestroy(handle_);
}

std::shared_ptr<const LibraryCall> Blas::product(const BlasCall& call) {
  const std::lock_guard guard(lock_);
  auto& known = products_[call];
  if (!known) known = std::make_shared<const Product>(*this, call);
  return known;
}

Blas::Product::Product(const Blas& blas, const BlasCall& call)
    : blas_(blas),
      call_(call),
      desc_(nullptr, blas.api_.cublasLtMatmulDescDestroy),
      first_(layout(call.first)),
      second_(layout(call.second)),
      result_(layout(call.result)) {
  const BlasApi& api = blas_.api_;
  const TypeRow& type = *find_type(call.second.dtype);
  lt::MatmulDesc made = nullptr;
  const lt::ComputeType compute = call.rounds && call.second.dtype == LTC_F32 ? lt::kComputeFastTf32 : type.compute;
  api.check(api.cublasLtMatmulDescCreate(&made, compute, type.scale), "cublasLtMatmulDescCreate");
  desc_.reset(made);
  describe(lt::kTransA, call.first.operation);
  describe(lt::kTransB, call.second.operation);
  describe_more();
  ask();
}

template <typename Value>
void Blas::Product::describe(lt::DescAttribute attribute, Value value) const {
  blas_.api_.check(blas_.api_.cublasLtMatmulDescSetAttribute(desc_.get(), attribute, &value, sizeof value),
                   "cublasLtMatmulDescSetAttribute");
}

// The heuristics read from the addresses how they are aligned, so blocks of memory stand for those of the runs.
void Blas::Product::describe_more() {
  const kernels::Epilogue& epilogue = call_.epilogue;
  uint32_t bits = 0;
  if (epilogue.bias) bits |= lt::kBias;
  if (epilogue.activation == kernels::Activation::kRelu) bits |= lt::kRelu;
  if (epilogue.activation == kernels::Activation::kGelu) bits |= lt::kGelu;
  if (epilogue.keeps_input) bits |= lt::kAux;
  if (bits) describe(lt::kEpilogue, bits);
  if (call_.scaled) describe(lt::kFastSums, int8_t{call_.rounds});
  if (epilogue.keeps_input) {
    describe(lt::kAuxLeading, call_.result.leading);
    describe(lt::kAuxBatchStride, call_.result.batch_stride);
  }
  const CUdeviceptr any = kBlockAlignment, more[] = {any, any, any, any};
  set_more_buffers(more);
}

// The scales, the vector of the epilogue and the matrix that it keeps, those that there are.
void Blas::Product::set_more_buffers(std::span<const CUdeviceptr> buffers) const {
  size_t next = 0;
  if (call_.scaled) {
    describe(lt::kScalePointerB, buffers[next++]);  // of a, which is the library's second
    describe(lt::kScalePointerA, buffers[next++]);
  }
  if (call_.epilogue.bias) describe(lt::kBiasPointer, buffers[next++]);
  if (call_.epilogue.keeps_input) describe(lt::kAuxPointer, buffers[next]);
}

Blas::Product::Owned<lt::Layout> Blas::Product::layout(const BlasOperand& operand) const {
  const BlasApi& api = blas_.api_;
  lt::Layout made = nullptr;
  api.check(api.cublasLtMatrixLayoutCreate(&made, find_type(operand.dtype)->data, operand.rows, operand.columns, operand.leading),
            "cublasLtMatrixLayoutCreate");
  Owned<lt::Layout> layout(made, api.cublasLtMatrixLayoutDestroy);
  api.check(api.cublasLtMatrixLayoutSetAttribute(made, lt::kBatchCount, &call_.batch, sizeof call_.batch),
            "cublasLtMatrixLayoutSetAttribute");
  api.check(api.cublasLtMatrixLayoutSetAttribute(made, lt::kBatchStride, &operand.batch_stride, sizeof operand.batch_stride),
            "cublasLtMatrixLayoutSetAttribute");
  return layout;
}

void Blas::Product::ask() {
  const BlasApi& api = blas_.api_;
  lt::Preference made = nullptr;
  api.check(api.cublasLtMatmulPreferenceCreate(&made), "cublasLtMatmulPreferenceCreate");
  const Owned<lt::Preference> preference(made, api.cublasLtMatmulPreferenceDestroy);
  const auto set = [&](lt::PreferenceAttribute attribute, auto value) {
    api.check(api.cublasLtMatmulPreferenceSetAttribute(made, attribute, &value, sizeof value),
              "cublasLtMatmulPreferenceSetAttribute");
  };
  set(lt::kMaxWorkspaceBytes, uint64_t{kWorkspaceBytes});
  if ((call_.scaled || kernels::is_half(call_.second.dtype)) && !call_.rounds)
    set(lt::kReductionSchemes, uint32_t{lt::kNoReduction | lt::kReduceInComputeType});
  set(lt::kMinAlignmentA, call_.first.alignment_bytes);
  set(lt::kMinAlignmentB, call_.second.alignment_bytes);
  set(lt::kMinAlignmentC, call_.result.alignment_bytes);
  set(lt::kMinAlignmentD, call_.result.alignment_bytes);
  int found = 0;
  const lt::Status status = api.cublasLtMatmulAlgoGetHeuristic(blas_.handle_, desc_.get(), first_.get(), second_.get(),
                                                               result_.get(), result_.get(), made, 1, &chosen_, &found);
  if (status != lt::kSuccess || found == 0 || chosen_.state != lt::kSuccess) {
    throw Failure(LTC_UNSUPPORTED, "cuBLASLt knows no way to compute " + std::to_string(call_.batch) + " products of [" +
                                       std::to_string(call_.result.columns) + "," + std::to_string(call_.result.rows) +
                                       "] (status " + std::to_string(status) + ")" +
                                       (call_.scaled ? " of floats of 8 bits; LTC_CUDA_WITHOUT=fp8 leaves them to the CPU"
                                        : call_.epilogue == kernels::Epilogue{}
                                            ? ""
                                            : " with what follows them; LTC_CUDA_WITHOUT=epilogues leaves that to kernels"));
  }
}

void Blas::Product::launch(std::span<const CUdeviceptr> buffers, CUstream stream) const {
  set_more_buffers(buffers.subspan(3));
  const double wide[] = {1, 0};
  const float narrow[] = {1, 0};
  const bool is_wide = call_.second.dtype == LTC_F64;
  const void* alpha = is_wide ? static_cast<const void*>(&wide[0]) : &narrow[0];
  const void* beta = is_wide ? static_cast<const void*>(&wide[1]) : &narrow[1];
  void* result = reinterpret_cast<void*>(buffers[2]);
  blas_.api_.check(
      blas_.api_.cublasLtMatmul(blas_.handle_, desc_.get(), alpha, at(buffers[1], call_.first), first_.get(),
                                at(buffers[0], call_.second), second_.get(), beta, result, result_.get(), result, result_.get(),
                                &chosen_.algorithm, reinterpret_cast<void*>(blas_.workspace_), kWorkspaceBytes, stream),
      "cublasLtMatmul");
}

}  // namespace ltc::cuda
