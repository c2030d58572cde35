#include "core/serve/inference_protocol.h"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#include "core/ir/text.h"
#include "core/serve/json_request.h"

namespace ltc::serve {
namespace {

struct Datatype {
  DType dtype;
  std::string_view name;
};
constexpr Datatype kDatatypes[] = {
    {DType::kBool, "BOOL"}, {DType::kU8, "UINT8"},  {DType::kU16, "UINT16"}, {DType::kU32, "UINT32"}, {DType::kU64, "UINT64"},
    {DType::kI8, "INT8"},   {DType::kI16, "INT16"}, {DType::kI32, "INT32"},  {DType::kI64, "INT64"},  {DType::kF16, "FP16"},
    {DType::kBF16, "BF16"}, {DType::kF32, "FP32"},  {DType::kF64, "FP64"},
};

// Calls `visit` with a value of the C++ type of the dtype's elements. False for a dtype whose elements JSON numbers do not give.
template <typename Visit>
bool visit_dtype(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::kBool: return visit(bool{}), true;
    case DType::kU8: return visit(uint8_t{}), true;
    case DType::kU16: return visit(uint16_t{}), true;
    case DType::kU32: return visit(uint32_t{}), true;
    case DType::kU64: return visit(uint64_t{}), true;
    case DType::kI8: return visit(int8_t{}), true;
    case DType::kI16: return visit(int16_t{}), true;
    case DType::kI32: return visit(int32_t{}), true;
    case DType::kI64: return visit(int64_t{}), true;
    case DType::kF32: return visit(float{}), true;
    case DType::kF64: return visit(double{}), true;
    default: return false;
  }
}

bool is_json_number(DType dtype) {
  return visit_dtype(dtype, [](auto) {});
}

// For messages. Lists and objects may be nested too deep to be written.
std::string described(const Json& json) { return json.is_array() ? "a list" : json.is_object() ? "an object" : json.dump(); }

template <typename Element>
Element element_of(const Json& json, const std::string& where) {
  if constexpr (std::is_same_v<Element, bool>) {
    if (json.is_boolean()) return json.get<bool>();
  } else if constexpr (std::is_floating_point_v<Element>) {
    if (json.is_number() && std::abs(json.get<double>()) <= double{std::numeric_limits<Element>::max()})
      return static_cast<Element>(json.get<double>());
  } else if (json.is_number_unsigned()) {
    if (json.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<Element>::max())) return json.get<Element>();
  } else if (json.is_number_integer()) {
    const auto value = json.get<int64_t>();  // negative: the others are unsigned
    if (std::is_signed_v<Element> && value >= static_cast<int64_t>(std::numeric_limits<Element>::min()))
      return static_cast<Element>(value);
  }
  refuse(where, ": data: ", described(json), " is no value of the datatype");
}

// Lists may be nested; their elements count in order.
template <typename Element>
void append_elements(const Json& json, const std::string& where, size_t most, std::string& out) {
  std::vector<std::pair<const Json*, size_t>> open{{&json, 0}};
  while (!open.empty()) {
    auto& [list, next] = open.back();
    if (next == list->size()) {
      open.pop_back();
      continue;
    }
    const Json& item = (*list)[next++];
    if (item.is_array()) {
      open.emplace_back(&item, 0);
      continue;
    }
    if (out.size() == most) refuse(where, ": data has more than the ", most / sizeof(Element), " elements of its shape");
    const auto element = element_of<Element>(item, where);
    out.append(reinterpret_cast<const char*>(&element), sizeof element);
  }
}

size_t index_of(const std::vector<deploy::NamedType>& tensors, const std::string& name, const char* kind) {
  std::string known;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].name == name) return i;
    known += cat(known.empty() ? "" : ", ", tensors[i].name);
  }
  refuse("there is no ", kind, " ", name, ", but: ", known);
}

class Reader {
 public:
  Reader(const ServedFunction& function, std::string body, std::optional<size_t> json_size) : function_(function) {
    result_.request = std::make_shared<Request>();
    request().body = std::move(body);
    const std::string_view bytes = request().body;
    if (json_size && *json_size > bytes.size())
      refuse("the header says that the JSON has ", *json_size, " bytes, and the body has ", bytes.size());
    rest_ = json_size ? bytes.substr(*json_size) : std::string_view();
    json_ = parse_request(bytes.substr(0, json_size.value_or(bytes.size())));
  }

  InferRequest run() {
    if (json_.contains("id")) result_.id = text_member(json_, "id", "the request");
    read_inputs();
    read_outputs();
    request().deadline = deadline_of(json_);
    return std::move(result_);
  }

 private:
  Request& request() { return *result_.request; }

  void read_inputs() {
    const size_t count = function_.inputs.size();
    request().inputs.resize(count), request().input_data.resize(count);
    std::vector<bool> seen(count, false);
    for (const Json& input : list_member(json_, "inputs", "the request")) {
      if (!input.is_object()) refuse("an input is to be an object");
      const std::string name = text_member(input, "name", "an input");
      const size_t index = index_of(function_.inputs, name, "input");
      if (seen[index]) refuse("input ", name, " is given twice");
      seen[index] = true;
      read_input(input, index, "input " + name);
    }
    for (size_t i = 0; i < count; ++i) {
      if (!seen[i]) refuse("input ", function_.inputs[i].name, " is missing");
    }
    if (!rest_.empty()) refuse("the body has ", rest_.size(), " bytes that belong to no input");
    if (function_.max_rows > 1) check_rows();
  }

  void read_input(const Json& input, size_t index, const std::string& where) {
    const deploy::NamedType& expected = function_.inputs[index];
    const DType dtype = type_of(expected.type).dtype;
    if (const std::string given = text_member(input, "datatype", where); given != datatype_name(dtype))
      refuse(where, " is ", given, ", and is to be ", datatype_name(dtype));
    std::vector<int64_t> sizes;
    for (const Json& size : list_member(input, "shape", where)) {
      if (!size.is_number_unsigned() || size.get<uint64_t>() > INT32_MAX)
        refuse(where, ": shape: ", described(size), " is no size");
      sizes.push_back(size.get<int64_t>());
    }
    check_sizes(sizes, expected, where);
    if (!is_valid({dtype, sizes, sizes})) refuse(where, ": its shape is too large");
    size_t size_bytes = dtype_size_bytes(dtype);
    for (const int64_t size : sizes) size_bytes *= static_cast<size_t>(size);
    std::string_view bytes;
    if (const auto size = number_parameter(input, "binary_data_size", where)) {
      if (*size > rest_.size()) refuse(where, " has ", *size, " bytes, and the body has only ", rest_.size(), " more");
      bytes = rest_.substr(0, *size);
      rest_.remove_prefix(*size);
      if (dtype == DType::kBool && bytes.find_first_not_of(std::string_view("\0\1", 2)) != bytes.npos)
        refuse(where, " has a byte that is neither 0 nor 1");
      if (reinterpret_cast<uintptr_t>(bytes.data()) % alignof(std::max_align_t) != 0)
        bytes = request().input_data[index] = std::string(bytes);
    } else {
      read_elements(list_member(input, "data", where), dtype, size_bytes, request().input_data[index], where);
      bytes = request().input_data[index];
    }
    if (bytes.size() != size_bytes) refuse(where, " has ", bytes.size(), " bytes of data, and its shape ", size_bytes);
    // A type is kept for ever: a client is to send the data of each that it makes.
    request().inputs[index] = deploy::view_of(intern_contiguous(dtype, sizes), bytes.data());
  }

  void check_sizes(const std::vector<int64_t>& sizes, const deploy::NamedType& expected, const std::string& where) const {
    const Type& type = type_of(expected.type);
    bool fits = sizes.size() == type.sizes.size();
    for (size_t dim = 0; fits && dim < sizes.size(); ++dim) {
      fits = expected.sizes.empty() ? sizes[dim] == type.sizes[dim] : may_be(sizes[dim], expected.sizes[dim]);
    }
    if (fits) return;
    std::string given;
    for (const int64_t size : sizes) given += cat(given.empty() ? "" : ",", size);
    refuse(where, " has shape [", given, "], and is to be ", expected.text(function_.dimensions),
           function_.dimensions.empty() ? "" : ", ", function_.ranges());
  }

  // A size that follows from others in another way is checked when the request runs.
  bool may_be(int64_t size, const deploy::Formula& formula) const {
    if (formula.dimensions.empty()) return size == formula.value({});
    const uint32_t dimension = formula.plain_dimension();
    return dimension == kNone || (size >= function_.dimensions[dimension].min && size <= function_.dimensions[dimension].max);
  }

  static void read_elements(const Json& data, DType dtype, size_t most, std::string& out, const std::string& where) {
    out.reserve(std::min(most, data.size() * 8));
    const bool is_number = visit_dtype(dtype, [&](auto element) { append_elements<decltype(element)>(data, where, most, out); });
    if (!is_number) refuse(where, " is ", datatype_name(dtype), ", which JSON cannot give: send it as bytes");
  }

  void check_rows() {
    request().rows = request().inputs[0].sizes[0];
    for (size_t i = 0; i < function_.inputs.size(); ++i) {
      if (request().inputs[i].sizes[0] != request().rows)
        refuse("input ", function_.inputs[0].name, " has ", request().rows, " rows, and input ", function_.inputs[i].name,
               " has ", request().inputs[i].sizes[0]);
    }
  }

  void read_outputs() {
    const bool all_as_bytes = flag_parameter(json_, "binary_data_output", "the request", false);
    const bool names_them = json_.contains("outputs") && !list_member(json_, "outputs", "the request").empty();
    result_.wanted.assign(function_.results.size(), !names_them);
    result_.as_bytes.assign(function_.results.size(), all_as_bytes && !names_them);
    for (const Json& output : names_them ? json_["outputs"] : Json::array()) {
      if (!output.is_object()) refuse("an output is to be an object");
      const std::string name = text_member(output, "name", "an output");
      const size_t index = index_of(function_.results, name, "output");
      result_.wanted[index] = true;
      result_.as_bytes[index] = flag_parameter(output, "binary_data", "output " + name, all_as_bytes);
    }
    for (size_t i = 0; i < function_.results.size(); ++i) {
      const DType dtype = type_of(function_.results[i].type).dtype;
      if (result_.wanted[i] && !result_.as_bytes[i] && !is_json_number(dtype))
        refuse("output ", function_.results[i].name, " is ", datatype_name(dtype), ", which JSON cannot give: ask for bytes");
    }
  }

  const ServedFunction& function_;
  InferRequest result_;
  Json json_;
  std::string_view rest_;
};

Json tensors_json(const std::vector<deploy::NamedType>& tensors) {
  Json list = Json::array();
  for (const deploy::NamedType& tensor : tensors) {
    std::vector<int64_t> sizes = type_of(tensor.type).sizes;
    for (size_t dim = 0; dim < tensor.sizes.size(); ++dim) {
      if (!tensor.sizes[dim].dimensions.empty()) sizes[dim] = -1;
    }
    list.push_back({{"name", tensor.name}, {"datatype", datatype_name(type_of(tensor.type).dtype)}, {"shape", sizes}});
  }
  return list;
}

Json elements_json(const std::string& data, DType dtype) {
  Json list = Json::array();
  visit_dtype(dtype, [&](auto element) {
    for (size_t place = 0; place < data.size(); place += sizeof element) {
      std::memcpy(&element, data.data() + place, sizeof element);
      list.push_back(element);
    }
  });
  return list;
}

}  // namespace

std::string_view datatype_name(DType dtype) {
  for (const Datatype& datatype : kDatatypes) {
    if (datatype.dtype == dtype) return datatype.name;
  }
  return {};
}

std::string model_metadata(const std::string& name, const ServedFunction& function) {
  return Json{{"name", name},
              {"versions", {"1"}},
              {"platform", "ltc"},
              {"inputs", tensors_json(function.inputs)},
              {"outputs", tensors_json(function.results)}}
      .dump();
}

InferRequest read_infer_request(const ServedFunction& function, std::string body, std::optional<size_t> json_size) {
  return Reader(function, std::move(body), json_size).run();
}

InferResponse write_infer_response(const std::string& name, const ServedFunction& function, const InferRequest& given) {
  const Request& request = *given.request;
  Json json = {{"model_name", name}, {"model_version", "1"}, {"outputs", Json::array()}};
  if (!given.id.empty()) json["id"] = given.id;
  std::string tensors;
  for (size_t i = 0; i < function.results.size(); ++i) {
    if (!given.wanted[i]) continue;
    const DType dtype = type_of(function.results[i].type).dtype;
    Json output = {{"name", function.results[i].name}, {"datatype", datatype_name(dtype)}, {"shape", request.result_sizes[i]}};
    if (given.as_bytes[i]) {
      output["parameters"] = {{"binary_data_size", request.results[i].size()}};
      tensors += request.results[i];
    } else {
      output["data"] = elements_json(request.results[i], dtype);
    }
    json["outputs"].push_back(std::move(output));
  }
  InferResponse response{text_of(json), std::nullopt};
  const bool has_bytes = std::ranges::find(given.as_bytes, true) != given.as_bytes.end();
  if (has_bytes) {
    response.json_size = response.body.size();
    response.body += tensors;
  }
  return response;
}

std::string error_body(std::string_view message) { return text_of(Json{{"error", message}}); }

}  // namespace ltc::serve
