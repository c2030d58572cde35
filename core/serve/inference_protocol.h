// Requests and answers of the Open Inference Protocol, version 2, over HTTP, as KServe and Triton speak it: JSON, and tensors as
// bytes after it (https://kserve.github.io/website/docs/concepts/architecture/data-plane/v2-protocol,
// https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_binary_data.md).
//
// Errors: INVALID_ARGUMENT for a request that cannot be read or does not fit the function, with the place and both values.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/serve/scheduler.h"

namespace ltc::serve {

// "FP32"; empty for a dtype that the protocol does not have.
std::string_view datatype_name(DType dtype);

// The answer to GET /v2/models/NAME.
std::string model_metadata(const std::string& name, const ServedFunction& function);

struct InferRequest {
  RequestRef request;
  std::string id;
  std::vector<bool> wanted, as_bytes;  // by result
};

// `json_size`: bytes of the JSON at the beginning of the body; the tensors that follow are as long as it says. None: all is JSON.
// The deadline is set where the request has one.
InferRequest read_infer_request(const ServedFunction& function, std::string body, std::optional<size_t> json_size);

struct InferResponse {
  std::string body;
  std::optional<size_t> json_size;  // where tensors follow the JSON
};
// The answer to a request that is done without a failure.
InferResponse write_infer_response(const std::string& name, const ServedFunction& function, const InferRequest& request);

std::string error_body(std::string_view message);

}  // namespace ltc::serve
