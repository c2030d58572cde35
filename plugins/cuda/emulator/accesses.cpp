// ld, st, cvta, and copies into shared memory that run ahead.
#include "cuda/emulator/places.h"
#include "cuda/emulator/table.h"

namespace ltc::emulator {
namespace {

template <Space kSpace, typename T, int kCount>
void load(Thread& t, const Instruction& in) {
  const std::byte* from = place<kSpace>(t, address_in<kSpace>(t, in, kCount), sizeof(T) * kCount, Access::kRead);
  for (int i = 0; i < kCount; ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    set<T>(t, in, i, value);
  }
}
template <Space kSpace, typename T, int kCount>
void store(Thread& t, const Instruction& in) {
  std::byte values[sizeof(T) * kCount];
  for (int i = 0; i < kCount; ++i) std::memcpy(values + i * sizeof(T), &t.registers[in.slots[i + 1]], sizeof(T));
  std::byte* to = place<kSpace>(t, address_in<kSpace>(t, in, 0), sizeof values, Access::kWrite, values);
  std::memcpy(to, values, sizeof values);
}

template <Space kSpace, typename T, int kCount>
void add_access(Table& table, const std::string& space, const std::string& type) {
  const std::string names = (kCount == 1 ? "" : kCount == 2 ? ".v2" : ".v4") + type;
  table.add("ld" + space + names, kCount + 1, load<kSpace, T, kCount>);
  if (kSpace != Space::kConst) table.add("st" + space + names, kCount + 1, store<kSpace, T, kCount>);
  if (kSpace != Space::kGlobal && kSpace != Space::kShared && kSpace != Space::kGeneric) return;
  table.add("ld.volatile" + space + names, kCount + 1, load<kSpace, T, kCount>);
  table.add("st.volatile" + space + names, kCount + 1, store<kSpace, T, kCount>);
  if (kSpace == Space::kGlobal) table.add("ld.global.nc" + names, kCount + 1, load<kSpace, T, kCount>);
}
template <Space kSpace, typename T>
void add_type(Table& table, const std::string& space, const std::string& type) {
  add_access<kSpace, T, 1>(table, space, type);
  add_access<kSpace, T, 2>(table, space, type);
  if constexpr (sizeof(T) < 8) add_access<kSpace, T, 4>(table, space, type);
}
template <Space kSpace>
void add_space(Table& table, const std::string& space) {
  for (const char* type : {".b8", ".u8"}) add_type<kSpace, uint8_t>(table, space, type);
  for (const char* type : {".b16", ".u16"}) add_type<kSpace, uint16_t>(table, space, type);
  for (const char* type : {".b32", ".u32", ".f32"}) add_type<kSpace, uint32_t>(table, space, type);
  for (const char* type : {".b64", ".u64", ".f64"}) add_type<kSpace, uint64_t>(table, space, type);
  add_type<kSpace, int8_t>(table, space, ".s8");
  add_type<kSpace, int16_t>(table, space, ".s16");
  add_type<kSpace, int32_t>(table, space, ".s32");
  add_type<kSpace, int64_t>(table, space, ".s64");
}

// ---- generic addresses

template <uint64_t kWindow, bool kTo>
void change_space(Thread& t, const Instruction& in) {
  const auto address = get<uint64_t>(t, in, 1);
  set<uint64_t>(t, in, 0, kTo ? address - kWindow : address + kWindow);
}

// ---- cp.async

Stamp& writer_of(Thread& t, uint64_t address) { return t.block->shared_cells[address].writer; }

// The destination is of no use until the thread has waited, so it gets NaN.
template <uint32_t kBytes>
void copy_ahead(Thread& t, const Instruction& in) {
  const auto to = get<uint32_t>(t, in, 0), bytes = get<uint32_t>(t, in, 2);
  const uint32_t there = in.slots[3] == 0 ? bytes : get<uint32_t>(t, in, 3);
  if (bytes != kBytes || there > kBytes) t.fail(CUDA_ERROR_ILLEGAL_INSTRUCTION, "of another number of bytes");
  AheadCopy copy{.to = to, .bytes = kBytes};
  if (there) {
    check_alignment(t, get<uint64_t>(t, in, 1), kBytes);
    std::memcpy(copy.data, place<Space::kGlobal>(t, get<uint64_t>(t, in, 1), there, Access::kRead), there);
  }
  std::memset(place<Space::kShared>(t, to, kBytes, Access::kWrite), 0xff, kBytes);
  for (uint32_t i = 0; i < kBytes; ++i) writer_of(t, to + i).pending = 1;
  t.copies.push_back(copy);
}

// Ends the copies that were committed before the last `kept` groups; with `all`, those of no group too.
void wait_for_copies(Thread& t, uint32_t kept, bool all) {
  std::erase_if(t.copies, [&](const AheadCopy& copy) {
    if (!all && (!copy.committed || copy.group + kept >= t.groups)) return false;
    std::memcpy(place<Space::kShared>(t, copy.to, copy.bytes, Access::kWrite), copy.data, copy.bytes);
    return true;
  });
}
void commit_copies(Thread& t, const Instruction&) {
  for (AheadCopy& copy : t.copies) {
    if (!copy.committed) copy.group = t.groups;
    copy.committed = true;
  }
  ++t.groups;
}
void wait_for_groups(Thread& t, const Instruction& in) { wait_for_copies(t, get<uint32_t>(t, in, 0), false); }
void wait_for_all(Thread& t, const Instruction&) { wait_for_copies(t, 0, true); }

template <uint32_t kBytes>
void add_copy(Table& table, const std::string& name) {
  table.add("cp.async." + name, 3, 4, copy_ahead<kBytes>);
}

}  // namespace

void add_accesses(Table& table) {
  add_space<Space::kGeneric>(table, "");
  add_space<Space::kParam>(table, ".param");
  add_space<Space::kGlobal>(table, ".global");
  add_space<Space::kShared>(table, ".shared");
  add_space<Space::kLocal>(table, ".local");
  add_space<Space::kConst>(table, ".const");
  for (const char* width : {".u32", ".u64"}) {
    for (const char* space : {"global", "const", "param"}) {
      table.add(std::string("cvta.to.") + space + width, 2, change_space<0, true>);
      table.add(std::string("cvta.") + space + width, 2, change_space<0, false>);
    }
    table.add(std::string("cvta.to.shared") + width, 2, change_space<kSharedWindow, true>);
    table.add(std::string("cvta.shared") + width, 2, change_space<kSharedWindow, false>);
    table.add(std::string("cvta.to.local") + width, 2, change_space<kLocalWindow, true>);
    table.add(std::string("cvta.local") + width, 2, change_space<kLocalWindow, false>);
  }
  add_copy<4>(table, "ca.shared.global");
  add_copy<16>(table, "cg.shared.global");
  table.add("cp.async.commit_group", 0, commit_copies);
  table.add("cp.async.wait_group", 1, wait_for_groups);
  table.add("cp.async.wait_all", 0, wait_for_all);
}

}  // namespace ltc::emulator
