#include "core/deploy/manifest.h"

#include <limits>
#include <set>
#include <unordered_map>

#include "core/deploy/json.h"

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

NamedType read_type(const JsonObject& object) {
  const std::string name = object.text("dtype");
  const DType dtype = dtype_from_name(name);
  if (dtype == DType::kNone) fail(Code::kUnsupported, object.where(), ": dtype ", name, " is not known here");
  const std::vector<int64_t> sizes = object.integers("shape");
  if (!is_valid({dtype, sizes, std::vector<int64_t>(sizes.size(), 0)})) object.corrupt("no tensor has that shape");
  return {object.text("name"), intern_contiguous(dtype, sizes)};
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
    root_.only({"format", "producer", "state", "constants", "generators", "functions", "executables"});
    manifest_.producer = root_.text("producer");
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
  FunctionManifest read_function(const JsonObject& json) {
    json.only({"name", "graph", "text", "inputs", "results", "params", "numbers", "draws", "updates", "samples"});
    FunctionManifest function{.name = json.text("name"), .graph = json.text("graph")};
    for (const JsonObject& input : json.objects("inputs")) {
      input.only({"name", "dtype", "shape"});
      function.inputs.push_back(read_type(input));
    }
    std::vector<uint64_t> drawn(manifest_.generators.size());
    for (const JsonObject& draw : json.objects("draws")) {
      draw.only({"generator", "advance"});
      const uint32_t generator = draw.index("generator", manifest_.generators.size());
      const uint64_t advance = unsigned_number(draw, "advance");
      function.draws.push_back({generator, advance, drawn[generator]});
      drawn[generator] += advance;
    }
    for (const JsonObject& param : json.objects("params")) function.params.push_back(read_source(param, function, false));
    for (const JsonObject& number : json.objects("numbers")) function.numbers.push_back(read_number(number, function));
    for (const JsonObject& result : json.objects("results")) {
      result.only({"name", "dtype", "shape", "from"});
      function.results.push_back(read_type(result));
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
    json.only({"dtype", "value"});
    return {Number::kValue, dtype, read_scalar(json, dtype)};
  }

  const JsonObject& root_;
  Manifest manifest_;
  Numbers state_, constants_;
};

}  // namespace

Manifest read_manifest(std::string_view text, const std::string& where) {
  const Json json = parse_json(text, where);
  return Reader(JsonObject(json, where)).run();
}

}  // namespace ltc::deploy
