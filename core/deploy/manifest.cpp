#include "core/deploy/manifest.h"

#include <algorithm>
#include <limits>
#include <set>
#include <unordered_map>

#include "core/deploy/json.h"
#include "core/ir/text.h"

namespace ltc::deploy {
namespace {

using Numbers = std::unordered_map<std::string, uint32_t>;  // by name

Numbers numbers_of(const std::vector<std::string>& names, const JsonObject& object, std::string_view member) {
  Numbers numbers;
  for (const std::string& name : names) {
    if (!numbers.emplace(name, static_cast<uint32_t>(numbers.size())).second) object.corrupt(member, " has ", name, " twice");
  }
  return numbers;
}

uint64_t unsigned_number(const JsonObject& object, std::string_view name) {
  const Json& value = object.member(name);
  if (!value.is_number_unsigned()) object.corrupt(name, " is to be a number that is not below 0");
  return value.get<uint64_t>();
}

uint32_t read_dimension(const JsonObject& object, const Json& value, const std::vector<Dimension>& dimensions) {
  const auto found = std::ranges::find_if(dimensions, [&](const Dimension& one) { return value == one.name; });
  if (found == dimensions.end()) object.corrupt("there is no dimension ", value.dump());
  return static_cast<uint32_t>(found - dimensions.begin());
}

// A number, the name of a dimension, or an object with the members of Formula.
Formula read_formula(const JsonObject& object, const Json& value, const std::vector<Dimension>& dimensions) {
  if (value.is_number_integer()) return {.dimensions = {}, .offset = value.get<int64_t>()};
  if (value.is_string()) return {.dimensions = {read_dimension(object, value, dimensions)}};
  const JsonObject json(value, cat(object.where(), ": a formula"));
  json.only({"of", "scale", "offset", "divisor"});
  Formula formula;
  if (!json.member("of").is_array()) json.corrupt("of is to be a list of dimensions");
  for (const Json& name : json.member("of")) formula.dimensions.push_back(read_dimension(json, name, dimensions));
  for (const auto& [member, number] :
       {std::pair("scale", &formula.scale), {"offset", &formula.offset}, {"divisor", &formula.divisor}})
    if (json.has(member)) *number = json.integer(member);
  if (formula.divisor < 1) json.corrupt("divisor is ", formula.divisor);
  return formula;
}

NamedType read_type(const JsonObject& object, const std::vector<Dimension>& dimensions) {
  const std::string name = object.text("dtype");
  const DType dtype = dtype_from_name(name);
  if (dtype == DType::kNone) fail(Code::kUnsupported, object.where(), ": dtype ", name, " is not known here");
  if (!object.member("shape").is_array()) object.corrupt("shape is to be a list");
  std::vector<int64_t> sizes;
  NamedType type{.name = object.text("name")};
  for (const Json& size : object.member("shape")) {
    type.sizes.push_back(read_formula(object, size, dimensions));
    sizes.push_back(type.sizes.back().value(examples_of(dimensions)));
  }
  if (std::ranges::all_of(type.sizes, [](const Formula& size) { return size.dimensions.empty(); })) type.sizes.clear();
  if (!is_valid({dtype, sizes, std::vector<int64_t>(sizes.size(), 0)})) object.corrupt("no tensor has that shape");
  type.type = intern_contiguous(dtype, sizes);
  return type;
}

double read_double(const JsonObject& object, const Json& value) {
  using Limits = std::numeric_limits<double>;
  if (value.is_number()) return value.get<double>();
  if (value == "nan") return Limits::quiet_NaN();
  if (value == "inf") return Limits::infinity();
  if (value == "-inf") return -Limits::infinity();
  object.corrupt("value is ", value.dump(), ", and is to be a number");
}

Scalar read_scalar(const JsonObject& object, DType dtype) {
  const Json& value = object.member("value");
  Scalar scalar{};
  if (is_complex(dtype)) {
    if (!value.is_array() || value.size() != 2) object.corrupt("value is to be a list of two numbers");
    scalar.c[0] = read_double(object, value[0]), scalar.c[1] = read_double(object, value[1]);
  } else if (is_floating(dtype)) {
    scalar.f = read_double(object, value);
  } else {
    if (!value.is_number_integer()) object.corrupt("value is to be an integer");
    scalar.i = value.get<int64_t>();
  }
  return scalar;
}

class Reader {
 public:
  explicit Reader(const JsonObject& root) : root_(root) {}

  Manifest run() {
    const int64_t format = root_.integer("format");
    if (format != kFormat)
      fail(Code::kUnsupported, root_.where(), ": the archive has format ", format, ", and format ", kFormat, " is read here");
    root_.only({"format", "producer", "metadata", "state", "constants", "generators", "functions", "executables"});
    manifest_.producer = root_.text("producer");
    if (root_.has("metadata")) manifest_.metadata = read_metadata(root_.object("metadata"));
    manifest_.state = root_.texts("state");
    manifest_.constants = root_.texts("constants");
    state_ = numbers_of(manifest_.state, root_, "state");
    constants_ = numbers_of(manifest_.constants, root_, "constants");
    for (const JsonObject& generator : root_.objects("generators")) {
      generator.only({"seed", "offset"});
      manifest_.generators.push_back({unsigned_number(generator, "seed"), unsigned_number(generator, "offset")});
    }
    std::set<std::string> names;
    for (const JsonObject& function : root_.objects("functions")) {
      manifest_.functions.push_back(read_function(function));
      if (!names.insert(manifest_.functions.back().name).second) function.corrupt("another function has that name");
    }
    if (root_.has("executables")) {
      for (const JsonObject& executable : root_.objects("executables")) {
        executable.only({"function", "target", "entry"});
        manifest_.executables.push_back({executable.text("function"), executable.text("target"), executable.text("entry")});
        if (!names.contains(manifest_.executables.back().function)) executable.corrupt("there is no such function");
      }
    }
    return std::move(manifest_);
  }

 private:
  static std::vector<std::pair<std::string, std::string>> read_metadata(const JsonObject& json) {
    std::vector<std::pair<std::string, std::string>> metadata;
    for (const auto& [key, value] : json.json().items()) metadata.emplace_back(key, json.text(key));
    std::ranges::sort(metadata);
    return metadata;
  }

  FunctionManifest read_function(const JsonObject& json) {
    json.only({"name", "graph", "text", "dimensions", "sizes", "inputs", "results", "params", "numbers", "draws", "updates",
               "samples"});
    FunctionManifest function{.name = json.text("name"), .graph = json.text("graph")};
    if (json.has("dimensions")) function.dimensions = read_dimensions(json);
    if (json.has("sizes")) function.size_rules = read_size_rules(json, function.dimensions);
    for (const JsonObject& input : json.objects("inputs")) {
      input.only({"name", "dtype", "shape"});
      function.inputs.push_back(read_type(input, function.dimensions));
      for (const Formula& size : function.inputs.back().sizes)
        if (!size.dimensions.empty() &&
            (size.plain_dimension() == kNone || !function.dimensions[size.plain_dimension()].is.empty()))
          input.corrupt("a size is to be a number or a dimension");
    }
    require_inputs_of(json, function);
    for (const JsonObject& draw : json.objects("draws")) {
      draw.only({"generator", "advance"});
      const uint32_t generator = draw.index("generator", manifest_.generators.size());
      function.draws.push_back({generator, read_formula(draw, draw.member("advance"), function.dimensions)});
      if (function.draws.back().advance.value(examples_of(function.dimensions)) < 0) draw.corrupt("its advance is negative");
    }
    for (const JsonObject& param : json.objects("params")) function.params.push_back(read_source(param, function, false));
    for (const JsonObject& number : json.objects("numbers")) function.numbers.push_back(read_number(number, function));
    for (const JsonObject& result : json.objects("results")) {
      result.only({"name", "dtype", "shape", "from"});
      function.results.push_back(read_type(result, function.dimensions));
      function.result_sources.push_back(read_source(result.object("from"), function, true));
    }
    for (const JsonObject& update : json.objects("updates")) {
      update.only({"state", "from"});
      const uint32_t state = named(update, "state", state_);
      function.updates.push_back({state, read_source(update.object("from"), function, true)});
    }
    function.samples = json.texts("samples");
    return function;
  }

  static std::vector<Dimension> read_dimensions(const JsonObject& json) {
    std::vector<Dimension> dimensions;
    for (const JsonObject& dimension : json.objects("dimensions")) {
      if (dimension.has("is")) {
        dimension.only({"name", "is"});
        const Formula is = read_formula(dimension, dimension.member("is"), dimensions);
        dimensions.push_back({.name = dimension.text("name"), .example = is.value(examples_of(dimensions)), .is = {is}});
        continue;
      }
      dimension.only({"name", "min", "max", "example"});
      if (!dimensions.empty() && !dimensions.back().is.empty()) dimension.corrupt("it comes after one that follows from others");
      dimensions.push_back({dimension.text("name"),
                            dimension.integer("min"),
                            dimension.has("max") ? dimension.integer("max") : INT64_MAX,
                            dimension.integer("example"),
                            {}});
      const Dimension& read = dimensions.back();
      if (read.min < 0 || read.example < read.min || read.example > read.max)
        dimension.corrupt("its example is out of its range");
    }
    return dimensions;
  }

  // Each dimension is a size of an input, which says what it is in a call.
  static void require_inputs_of(const JsonObject& json, const FunctionManifest& function) {
    for (uint32_t i = 0; i < function.dimensions.size(); ++i) {
      const auto has = [&](const NamedType& input) {
        return std::ranges::find(input.sizes, i, &Formula::plain_dimension) != input.sizes.end();
      };
      if (function.dimensions[i].is.empty() && !std::ranges::any_of(function.inputs, has))
        json.corrupt("no input has the dimension ", function.dimensions[i].name);
    }
  }

  static std::vector<SizeRule> read_size_rules(const JsonObject& json, const std::vector<Dimension>& dimensions) {
    std::vector<SizeRule> rules;
    for (const JsonObject& rule : json.objects("sizes")) {
      rule.only({"is", "at"});
      rules.push_back({read_formula(rule, rule.member("is"), dimensions), {}});
      try {
        for (const auto& [owner, attr, element] : rule.member("at").get<std::vector<std::tuple<uint32_t, int64_t, uint32_t>>>())
          rules.back().places.push_back({owner, attr < 0 ? kNone : static_cast<uint32_t>(attr), element});
      } catch (const Json::exception&) {
        rule.corrupt("at is to be a list of places");
      }
    }
    return rules;
  }

  // One of {"input": 0}, {"state": "weight"}, {"constant": "mask"} or {"output": 1}.
  ValueSource read_source(const JsonObject& json, const FunctionManifest& function, bool may_be_output) const {
    if (json.json().size() != 1) json.corrupt("this is to have one member");
    if (json.has("input")) return {ValueSource::kInput, json.index("input", function.inputs.size())};
    if (json.has("state")) return {ValueSource::kState, named(json, "state", state_)};
    if (json.has("constant")) return {ValueSource::kConstant, named(json, "constant", constants_)};
    if (may_be_output && json.has("output")) return {ValueSource::kOutput, json.index("output", UINT32_MAX)};
    json.only({});
    json.corrupt("this says no value");
  }

  static uint32_t named(const JsonObject& json, std::string_view member, const Numbers& numbers) {
    const std::string name = json.text(member);
    const auto found = numbers.find(name);
    if (found == numbers.end()) json.corrupt("there is no ", member, " ", name);
    return found->second;
  }

  Number read_number(const JsonObject& json, const FunctionManifest& function) const {
    const std::string name = json.text("dtype");
    const DType dtype = dtype_from_name(name);
    if (dtype == DType::kNone) json.corrupt("there is no dtype ", name);
    for (const auto& [member, kind] : {std::pair("seed_of", Number::kSeed), {"offset_of", Number::kOffset}}) {
      if (!json.has(member)) continue;
      json.only({"dtype", member});
      if (dtype != DType::kI64) json.corrupt("a seed or an offset is to be i64");
      return {kind, dtype, {}, json.index(member, function.draws.size())};
    }
    json.only({"dtype", "value", "size"});
    Number number{Number::kValue, dtype, read_scalar(json, dtype)};
    if (json.has("size")) {
      if (is_complex(dtype)) json.corrupt("a complex number is no size");
      number.size.push_back(read_formula(json, json.member("size"), function.dimensions));
    }
    return number;
  }

  const JsonObject& root_;
  Manifest manifest_;
  Numbers state_, constants_;
};

}  // namespace

std::string NamedType::text(std::span<const Dimension> dimensions) const {
  if (sizes.empty()) return type_text(type);
  std::string text;
  for (const Formula& size : sizes) text += cat(text.empty() ? "" : ",", size.text(dimensions));
  return cat(dtype_name(type_of(type).dtype), "[", text, "]");
}

TypeId NamedType::type_at(std::span<const int64_t> of_dimensions) const {
  if (sizes.empty()) return type;
  std::vector<int64_t> shape;
  for (const Formula& size : sizes) shape.push_back(size.value(of_dimensions));
  return resized(type_of(type), shape);
}

std::string FunctionManifest::signature() const {
  const auto list = [&](const std::vector<NamedType>& tensors) {
    std::string text;
    for (const NamedType& one : tensors) text += cat(text.empty() ? "" : ", ", one.name, ": ", one.text(dimensions));
    return text;
  };
  return cat(name, "(", list(inputs), ") -> (", list(results), ")");
}

std::string FunctionManifest::ranges() const {
  std::string text;
  for (const auto& [name, min, max, example, is] : dimensions)
    if (is.empty()) text += cat(text.empty() ? "" : ", ", name, " from ", min, max == INT64_MAX ? "" : cat(" to ", max));
  return text;
}

Scalar Number::value_at(std::span<const int64_t> sizes) const {
  if (size.empty()) return value;
  Scalar scalar{};
  const int64_t number = size[0].value(sizes);
  if (is_floating(dtype)) {
    scalar.f = static_cast<double>(number);
  } else {
    scalar.i = number;
  }
  return scalar;
}

Manifest read_manifest(std::string_view text, const std::string& where) {
  const Json json = parse_json(text, where);
  return Reader(JsonObject(json, where)).run();
}

}  // namespace ltc::deploy
