// Requests of the Open Inference Protocol. Input: whether tensors follow the JSON (take_flag), then the body. In the first case
// the JSON ends with the first line; without an end it is longer than the body.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/serve/inference_protocol.h"
#include "fuzz/target.h"

namespace ltc::fuzz {
namespace {

using deploy::Formula;
using nlohmann::json;
using serve::InferRequest;

// f32[batch,2], i64[3], bool[batch], f16[] and u8[0,width] -> f32[batch,2], bf16[2].
serve::ServedFunction make_function() {
  const auto fixed = [](int64_t size) { return Formula{{}, 0, size, 1}; };
  const Formula batch{{0}, 1, 0, 1}, width{{1}, 1, 0, 1};
  const auto type = [](DType dtype, const std::vector<int64_t>& sizes) { return intern_contiguous(dtype, sizes); };
  serve::ServedFunction made;
  made.name = "forward";
  made.dimensions = {{"batch", 1, 8, 2, {}}, {"width", 0, INT32_MAX, 1, {}}};
  made.inputs = {{"x", type(DType::kF32, {2, 2}), {batch, fixed(2)}},
                 {"index", type(DType::kI64, {3}), {}},
                 {"mask", type(DType::kBool, {2}), {batch}},
                 {"scale", type(DType::kF16, {}), {}},
                 {"none", type(DType::kU8, {0, 1}), {fixed(0), width}}};
  made.results = {{"y", type(DType::kF32, {2, 2}), {batch, fixed(2)}}, {"z", type(DType::kBF16, {2}), {}}};
  return made;
}

const serve::ServedFunction& function() {
  static const serve::ServedFunction made = make_function();
  return made;
}

json input_json(const std::string& name, const char* datatype, const std::vector<int64_t>& sizes) {
  return {{"name", name}, {"datatype", datatype}, {"shape", sizes}};
}

json bytes_of(json input, size_t size) {
  input["parameters"] = {{"binary_data_size", size}};
  return input;
}

json data_of(json input, const json& data) {
  input["data"] = data;
  return input;
}

// The same request, with tensors as bytes.
std::string written(const InferRequest& given) {
  json inputs = json::array(), outputs = json::array();
  std::string data;
  const serve::ServedFunction& served = function();
  for (size_t i = 0; i < served.inputs.size(); ++i) {
    const serve::TensorView& view = given.request->inputs[i];
    const std::vector<int64_t> sizes(view.sizes.begin(), view.sizes.end());
    inputs.push_back(
        bytes_of(input_json(served.inputs[i].name, serve::datatype_name(view.dtype).data(), sizes), view.size_bytes));
    data.append(static_cast<const char*>(view.data), view.size_bytes);
  }
  for (size_t i = 0; i < served.results.size(); ++i) {
    const json parameters = {{"binary_data", bool{given.as_bytes[i]}}};
    if (given.wanted[i]) outputs.push_back({{"name", served.results[i].name}, {"parameters", parameters}});
  }
  json request = {{"inputs", inputs}, {"outputs", outputs}};
  if (!given.id.empty()) request["id"] = given.id;
  return request.dump() + "\n" + data;
}

InferRequest read(std::string body, bool has_tensors) {
  const size_t end = body.find('\n');
  const size_t json_size = end == body.npos ? body.size() + 1 : end + 1;
  return serve::read_infer_request(function(), std::move(body), has_tensors ? std::optional(json_size) : std::nullopt);
}

void answer(const InferRequest& given) {
  const serve::ServedFunction& served = function();
  for (const TypeId type : deploy::results_of_call(served, given.request->inputs)) {
    given.request->results.emplace_back(type_of(type).size_bytes(), '\1');
    given.request->result_sizes.push_back(type_of(type).sizes);
  }
  const serve::InferResponse response = serve::write_infer_response("m", served, given);
  size_t bytes = response.json_size.value_or(response.body.size());
  const json parsed = json::parse(response.body.substr(0, bytes));
  require(parsed["outputs"].size() == static_cast<size_t>(std::ranges::count(given.wanted, true)),
          "the answer has what is wanted");
  for (const json& output : parsed["outputs"])
    bytes += output.contains("data") ? 0 : size_t{output["parameters"]["binary_data_size"]};
  require(bytes == response.body.size(), "the answer is as long as it says");
}

}  // namespace

bool accept(std::string_view input) {
  const bool has_tensors = take_flag(input);
  InferRequest given;
  try {
    given = read(std::string(input), has_tensors);
  } catch (const Error& error) {
    require(error.code() == Code::kInvalidArgument, "a refusal says that the client is wrong");
    require(json::parse(serve::error_body(error.what())).contains("error"), "a refusal is JSON");
    return false;
  }
  const InferRequest again = read(written(given), true);
  for (size_t i = 0; i < given.request->inputs.size(); ++i) {
    const serve::TensorView &one = given.request->inputs[i], &other = again.request->inputs[i];
    require(one.dtype == other.dtype && std::ranges::equal(one.sizes, other.sizes), "an input has the same type again");
    require(one.size_bytes == other.size_bytes && std::memcmp(one.data, other.data, one.size_bytes) == 0, "and the same bytes");
  }
  require(again.id == given.id && again.wanted == given.wanted && again.as_bytes == given.as_bytes, "the rest is the same");
  answer(given);
  return true;
}

std::vector<std::string> sound_inputs() {
  const json x = input_json("x", "FP32", {1, 2}), index = input_json("index", "INT64", {3}),
             mask = input_json("mask", "BOOL", {1});
  const json scale = input_json("scale", "FP16", {}), none = input_json("none", "UINT8", {0, 5});
  const json bytes = {{"inputs", {bytes_of(x, 8), bytes_of(index, 24), bytes_of(mask, 1), bytes_of(scale, 2), bytes_of(none, 0)}},
                      {"parameters", {{"binary_data_output", true}}}};
  const json mixed = {{"id", "a"},
                      {"inputs",
                       {data_of(x, {{1.5, -2}}), data_of(index, {1, -2, 3}), data_of(mask, {true}), bytes_of(scale, 2),
                        data_of(none, json::array())}},
                      {"outputs", {{{"name", "y"}}, {{"name", "z"}, {"parameters", {{"binary_data", true}}}}}},
                      {"parameters", {{"timeout", 1000}}}};
  return {"\1" + bytes.dump() + "\n" + std::string(35, '\1'), "\1" + mixed.dump() + "\nab"};
}

}  // namespace ltc::fuzz
