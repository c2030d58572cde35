// Forms of a buffer's contents that kernels prefer, such as the weight of a convolution in the blocks of oneDNN.
#pragma once
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ltc::torchscript {

// Says which contents a value is made of: a number for each buffer that changes when the buffer is written.
using ContentIds = std::vector<uint64_t>;

// A buffer keeps a form from the second time on that somebody makes it: weights that a training step changes are packed once, and
// a copy of them would only take memory. One thread at a time.
class PackedForms {
 public:
  // Null unless the form is kept.
  const std::vector<c10::IValue>* find(const std::string& key, const ContentIds& contents) const {
    const auto form =
        std::ranges::find_if(forms_, [&](const Form& each) { return each.contents == contents && each.key == key; });
    return form == forms_.end() || form->values.empty() ? nullptr : &form->values;
  }

  // Whether the form is kept now. The oldest one makes room.
  bool offer(const std::string& key, const ContentIds& contents, const std::vector<c10::IValue>& values) {
    const auto form = std::ranges::find(forms_, key, &Form::key);
    if (form != forms_.end() && form->contents == contents) {
      form->values = values;
      return true;
    }
    if (form != forms_.end()) {
      *form = {key, contents, {}};
    } else {
      if (forms_.size() == kMostForms) forms_.erase(forms_.begin());
      forms_.push_back({key, contents, {}});
    }
    return false;
  }

  // oneDNN's blocks are hardly larger than what they are made of.
  uint64_t size_bytes() const {
    uint64_t bytes = 0;
    for (const Form& form : forms_) {
      for (const c10::IValue& value : form.values) {
        bytes += static_cast<uint64_t>(value.toTensor().numel()) * value.toTensor().element_size();
      }
    }
    return bytes;
  }
  void clear() { forms_.clear(); }

 private:
  static constexpr size_t kMostForms = 4;  // programs of several sizes may each want one

  struct Form {
    std::string key;
    ContentIds contents;
    std::vector<c10::IValue> values;  // none of one that was made once
  };
  std::vector<Form> forms_;
};

}  // namespace ltc::torchscript
