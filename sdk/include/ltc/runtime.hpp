// ltc/runtime.h for C++17: objects that end themselves, and errors as exceptions.
//
// Threads and ownership as there.
#ifndef LTC_RUNTIME_HPP
#define LTC_RUNTIME_HPP

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "ltc/runtime.h"

namespace ltc::runtime {

class Error : public std::runtime_error {
 public:
  Error(ltc_code code, const char* message) : runtime_error(message), code_(code) {}
  ltc_code code() const { return code_; }

 private:
  ltc_code code_;
};

// Throws the error, if it is one.
inline void check(ltcr_error* error) {
  if (!error) return;
  const Error thrown(ltcr_error_code(error), ltcr_error_message(error));
  ltcr_error_destroy(error);
  throw thrown;
}

// The caller's memory as a tensor of that kind.
inline ltcr_tensor tensor(const ltcr_tensor_info& info, void* data) {
  return {info.dtype, info.rank, info.sizes, data, info.size_bytes};
}

// The same with sizes of the caller's, which outlive it.
inline ltcr_tensor tensor(const ltcr_tensor_info& info, const std::vector<int64_t>& sizes, void* data, size_t size_bytes) {
  return {info.dtype, static_cast<uint32_t>(sizes.size()), sizes.data(), data, size_bytes};
}

// An archive, compiled for a device.
class Model {
 public:
  // `backend`: one entry as in LTC_BACKEND; empty: that variable. `flags`: LTCR_RUN_EXECUTABLES, LTCR_TRUST_GRAPHS. `instances`:
  // see ltcr_model_options.
  explicit Model(const std::string& path, const std::string& backend = "", uint32_t flags = 0, uint32_t instances = 1) {
    const ltcr_model_options options{sizeof options, backend.empty() ? nullptr : backend.c_str(), flags, instances};
    ltcr_model* model = nullptr;
    check(ltcr_model_load(path.c_str(), &options, &model));
    model_.reset(model);
  }

  ltcr_model* get() const { return model_.get(); }

  size_t function(const std::string& name) const {
    size_t found = 0;
    check(ltcr_find_function(get(), name.c_str(), &found));
    return found;
  }
  size_t state(const std::string& name) const {
    size_t found = 0;
    check(ltcr_find_state(get(), name.c_str(), &found));
    return found;
  }
  const char* metadata(const std::string& key) const { return ltcr_metadata(get(), key.c_str()); }  // null where there is none
  const ltcr_tensor_info& input(size_t function, size_t input) const { return known(ltcr_input(get(), function, input)); }
  const ltcr_tensor_info& result(size_t function, size_t result) const { return known(ltcr_result(get(), function, result)); }
  // The sizes of a result of a call with inputs of these sizes, whose data may be null.
  std::vector<int64_t> result_sizes(size_t function, const std::vector<ltcr_tensor>& inputs, size_t result) const {
    std::vector<int64_t> sizes(this->result(function, result).rank);
    check(ltcr_result_sizes(get(), function, inputs.data(), inputs.size(), result, sizes.data(), nullptr));
    return sizes;
  }
  const ltcr_tensor_info& state_info(size_t state) const { return known(ltcr_state(get(), state)); }

 private:
  static const ltcr_tensor_info& known(const ltcr_tensor_info* info) {
    if (!info) throw Error(LTC_INVALID_ARGUMENT, "there is no tensor of that number");
    return *info;
  }
  struct Destroy {
    void operator()(ltcr_model* model) const { ltcr_model_destroy(model); }
  };
  std::unique_ptr<ltcr_model, Destroy> model_;
};

// A state of a model.
class Session {
 public:
  explicit Session(const Model& model) {
    ltcr_session* session = nullptr;
    check(ltcr_session_create(model.get(), &session));
    session_.reset(session);
  }

  ltcr_session* get() const { return session_.get(); }

  void run(size_t function, const std::vector<ltcr_tensor>& inputs, const std::vector<ltcr_tensor>& results) {
    check(ltcr_session_run(get(), function, inputs.data(), inputs.size(), results.data(), results.size()));
  }
  void get_state(size_t state, const ltcr_tensor& to) { check(ltcr_session_get_state(get(), state, &to)); }
  void set_state(size_t state, const ltcr_tensor& from) { check(ltcr_session_set_state(get(), state, &from)); }
  void save(const std::string& path) { check(ltcr_session_save(get(), path.c_str())); }
  void load(const std::string& path) { check(ltcr_session_load(get(), path.c_str())); }
  void reset() { ltcr_session_reset(get()); }

 private:
  struct Destroy {
    void operator()(ltcr_session* session) const { ltcr_session_destroy(session); }
  };
  std::unique_ptr<ltcr_session, Destroy> session_;
};

}  // namespace ltc::runtime

#endif  // LTC_RUNTIME_HPP
