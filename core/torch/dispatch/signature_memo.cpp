#include "core/torch/dispatch/signature_memo.h"

namespace ltc {

void CallKey::add_constant(const c10::IValue& value) {
  constexpr uint64_t kInt = 0, kFalse = 1, kTrue = 2, kDouble = 3, kDevice = 4, kString = 5;
  const auto push = [this](uint64_t word) { words_.push_back(word); };
  if (value.isNone()) {
    add_absent();
  } else if (value.isInt()) {
    push(kConstant | kInt), push(static_cast<uint64_t>(value.toInt()));
  } else if (value.isBool()) {
    push(kConstant | (value.toBool() ? kTrue : kFalse));
  } else if (value.isDouble()) {
    push(kConstant | kDouble), push(std::bit_cast<uint64_t>(value.toDouble()));
  } else if (value.isDevice()) {
    push(kConstant | kDevice);
  } else if (value.isString()) {
    const std::string& text = value.toStringRef();
    push(kConstant | kString), push(text.size());
    for (size_t i = 0; i < text.size(); i += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, text.data() + i, std::min(sizeof(uint64_t), text.size() - i));
      push(word);
    }
  } else if (value.isIntList()) {
    const auto list = value.toIntList();
    add_list(list.size());
    for (const int64_t element : list) push(static_cast<uint64_t>(element));
  } else {
    const auto elements = value.toListRef();
    add_list(elements.size());
    for (const c10::IValue& element : elements) add_constant(element);
  }
}

const SignatureMemo::Entry* SignatureMemo::look_up(const CallKey& key) const {
  const uint64_t hash = key.hash();
  for (size_t i = hash;; ++i) {
    const Slot& slot = slots_[i & (slots_.size() - 1)];
    if (!slot.entry) return nullptr;
    if (slot.hash == hash && slot.entry->key == key) return slot.entry;
  }
}

void SignatureMemo::place(const Entry* entry) {
  size_t i = entry->hash;
  while (slots_[i & (slots_.size() - 1)].entry) ++i;
  slots_[i & (slots_.size() - 1)] = {entry->hash, entry};
}

const Signature* SignatureMemo::insert(const CallKey& key, Signature signature) {
  entries_.emplace_back(key.hash(), key, std::move(signature));
  if (2 * entries_.size() > slots_.size()) {
    slots_ = std::vector<Slot>(2 * slots_.size());
    for (const Entry& entry : entries_) place(&entry);
  } else {
    place(&entries_.back());
  }
  return &entries_.back().signature;
}

}  // namespace ltc
