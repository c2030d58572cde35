// Requests and answers of generated text, after the generate extension of Triton
// (https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_generate.md): JSON, and server-sent events
// for a stream. Tokens are numbers; the client has the tokenizer.
//
// Errors: INVALID_ARGUMENT for a request that cannot be read or does not fit the model, with both values.
#pragma once

#include <string>

#include "core/serve/text_generator.h"

namespace ltc::serve {

struct GenerateRequest {
  TextRequestRef text;
  std::string id;
};

// {"tokens": [...], "parameters": {"max_tokens": 16, "stop_token_ids": [...], "timeout": MICROSECONDS}, "id": ...}, all but
// `tokens` optional. `max_tokens` of the server limits that of requests.
GenerateRequest read_generate_request(const TextModel& model, const std::string& body, int64_t max_tokens);

// The answer to POST /v2/models/NAME/generate.
std::string generate_response(const std::string& name, const std::string& id, const std::vector<int64_t>& tokens,
                              FinishReason reason);

// Events of POST /v2/models/NAME/generate_stream: one for each token, then one of the end.
std::string token_event(const std::string& name, const std::string& id, int64_t token);
std::string end_event(const std::string& name, const std::string& id, const TextEnd& end);

// The answer to GET /v2/models/NAME, for a model that only generates.
std::string text_model_metadata(const std::string& name, const TextModel& model);

}  // namespace ltc::serve
