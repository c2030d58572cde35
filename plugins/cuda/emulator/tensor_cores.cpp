// mma and ldmatrix, by all lanes of a warp. Where elements lie in a warp's fragments: the PTX ISA, "Matrix Fragments for
// mma.m16n8k16 with floating point type", and the same for m16n8k8.
#include "cuda/emulator/places.h"
#include "cuda/emulator/table.h"

namespace ltc::emulator {
namespace {

constexpr uint32_t kAll = 0xffffffff;

template <Meeting kMeeting>
void meet(Thread& t, const Instruction&) {
  for (const Thread* lane : t.warp->lanes) {
    if (!lane) t.fail(CUDA_ERROR_ILLEGAL_INSTRUCTION, "in a warp of fewer than 32 lanes");
  }
  wait_for_warp(t, kAll, kMeeting);
}

int row(const Thread& t, int i) { return t.lane / 4 + (i & 2 ? 8 : 0); }
int column(const Thread& t, int i) { return t.lane % 4 * 2 + (i & 1); }

template <typename Half>
struct Halves {
  static constexpr int kDepth = 16;
  static void load(const Thread& t, double (&a)[16][kDepth], double (&b)[kDepth][8]) {
    const auto element = [&](int slot, int i) {
      return Half{static_cast<uint16_t>(t.registers[t.at->slots[slot + i / 2]] >> 16 * (i % 2))}.value();
    };
    for (int i = 0; i < 8; ++i) a[row(t, i)][column(t, i) + (i < 4 ? 0 : 8)] = element(4, i);
    for (int i = 0; i < 4; ++i) b[column(t, i) + (i < 2 ? 0 : 8)][t.lane / 4] = element(8, i);
  }
};

struct Tf32 {
  static constexpr int kDepth = 8;
  static void load(const Thread& t, double (&a)[16][kDepth], double (&b)[kDepth][8]) {
    const auto element = [&](int slot) {  // the lower 13 bits are not read
      return from_bits<float>(t.registers[t.at->slots[slot]] & 0xffffe000);
    };
    for (int i = 0; i < 4; ++i) a[t.lane / 4 + i % 2 * 8][t.lane % 4 + i / 2 * 4] = element(4 + i);
    for (int i = 0; i < 2; ++i) b[t.lane % 4 + i * 4][t.lane / 4] = element(8 + i);
  }
};

// Operands: four sums, four registers of a, two of b, four sums.
template <typename Fragments>
void multiply(Warp& warp, uint32_t) {
  double a[16][Fragments::kDepth], b[Fragments::kDepth][8], sums[16][8];
  for (const Thread* t : warp.lanes) {
    Fragments::load(*t, a, b);
    for (int i = 0; i < 4; ++i) sums[row(*t, i)][column(*t, i)] = from_bits<float>(t->registers[t->at->slots[10 + i]]);
  }
  for (int m = 0; m < 16; ++m) {
    for (int n = 0; n < 8; ++n) {
      for (int k = 0; k < Fragments::kDepth; ++k) sums[m][n] += a[m][k] * b[k][n];
    }
  }
  for (Thread* t : warp.lanes) {
    for (int i = 0; i < 4; ++i) set<float>(*t, *t->at, i, static_cast<float>(sums[row(*t, i)][column(*t, i)]));
  }
}

// kCount matrices of 8 rows with 8 elements of 16 bits: lane i says where row i % 8 of matrix i / 8 is.
template <int kCount, bool kTransposed>
void load_matrices(Warp& warp, uint32_t) {
  uint16_t elements[kCount][8][8];
  for (int lane = 0; lane < 8 * kCount; ++lane) {
    Thread& t = *warp.lanes[lane];
    const std::byte* row = place<Space::kShared>(t, address_in<Space::kShared>(t, *t.at, kCount), 16, Access::kRead);
    std::memcpy(elements[lane / 8][lane % 8], row, 16);
  }
  for (Thread* t : warp.lanes) {
    const int a = t->lane / 4, b = t->lane % 4 * 2;
    for (int i = 0; i < kCount; ++i) {
      const auto& matrix = elements[i];
      const uint32_t low = kTransposed ? matrix[b][a] : matrix[a][b], high = kTransposed ? matrix[b + 1][a] : matrix[a][b + 1];
      set<uint32_t>(*t, *t->at, i, high << 16 | low);
    }
  }
}

template <int kCount>
void add_load(Table& table) {
  const std::string name = "ldmatrix.sync.aligned.m8n8.x" + std::to_string(kCount);
  table.add(name + ".shared.b16", kCount + 1, meet<load_matrices<kCount, false>>);
  table.add(name + ".trans.shared.b16", kCount + 1, meet<load_matrices<kCount, true>>);
}

}  // namespace

void add_tensor_cores(Table& table) {
  table.add("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 14, meet<multiply<Halves<F16>>>);
  table.add("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 14, meet<multiply<Halves<BF16>>>);
  table.add("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 14, meet<multiply<Tf32>>);
  add_load<1>(table);
  add_load<2>(table);
  add_load<4>(table);
}

}  // namespace ltc::emulator
