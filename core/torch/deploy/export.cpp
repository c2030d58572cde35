#include "core/torch/deploy/export.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <map>

#include "core/compile/lowering/symbolic_graph.h"
#include "core/deploy/graph_json.h"
#include "core/deploy/safetensors.h"
#include "core/deploy/zip.h"
#include "core/ir/binary.h"
#include "core/ir/text.h"
#include "core/torch/tensor/generator.h"

namespace ltc {
namespace {

class Exporter {
 public:
  Exporter(LazyDevice& device, const CapturedFunction& function)
      : device_(device), function_(function), captured_(function.captured()) {}

  ExportedFunction run() {
    check_arguments();
    for (const RngUse& use : captured_.rng_uses) {
      const auto number = [&](uint32_t scalar) { return static_cast<uint64_t>(captured_.scalars[scalar].i); };
      exported_.draws.push_back({use.generator, number(use.seed), number(use.offset), LazyGenerator::advance(type_of(use.type))});
    }
    add_graph();
    add_results();
    add_updates();
    return std::move(exported_);
  }

 private:
  static bool is_whole(const TensorGeometry& geometry, TypeId held) {
    const Type& type = type_of(held);
    return type.dtype == to_dtype(geometry.dtype) && type.sizes == geometry.sizes && type.strides == geometry.strides &&
           geometry.offset == 0 && type.dense && !geometry.conj && !geometry.neg;
  }

  void check_arguments() const {
    const auto& arguments = function_.arguments();
    for (size_t i = 0; i < arguments.size(); ++i) {
      TORCH_CHECK(is_whole(arguments[i].geometry, arguments[i].held.type), "tensor ", i,
                  " is a view of a part of another tensor, or of other sizes than what it views: an archive has whole tensors "
                  "only, .clone() it");
      TORCH_CHECK(arguments[i].held.first == i, "tensors ", arguments[i].held.first, " and ", i,
                  " share their memory: pass one of them");
    }
  }

  void add_graph() {
    TraceGraph traced;  // empty where nothing is computed
    if (captured_.step) traced = build_graph(captured_.step->trace, captured_.step->roots, captured_.locations);
    ByteWriter out;
    write_graph(out, traced.graph);
    exported_.graph = out.take();
    exported_.text = print(traced.graph);
    exported_.json = deploy::graph_json(traced.graph);
    for (const uint32_t buffer : traced.buffers) exported_.params.push_back(source_of(captured_.inputs[buffer]));
    size_t number = 0;
    for (const Param& param : traced.graph.params) {
      if (param.scalar) add_number(type_of(traced.graph.types[param.value]).dtype, traced.scalars[number++]);
    }
    if (!captured_.program) return;
    for_each_host_node(*captured_.program, [&](const Node& node, const std::string& reason) {
      exported_.host_ops.push_back(cat(op_name(node.op), at_location(node.location), ": ", reason));
    });
  }

  void add_number(DType dtype, uint32_t scalar) {
    const Scalar& value = captured_.scalars[scalar];
    ExportedFunction::Number number{std::string(dtype_name(dtype)), value.i};
    if (is_floating(dtype)) number.value = value.f;
    if (is_complex(dtype)) number.value = std::complex(value.c[0], value.c[1]);
    for (uint32_t i = 0; i < captured_.rng_uses.size(); ++i) {
      if (captured_.rng_uses[i].seed == scalar) number.seed_of = i;
      if (captured_.rng_uses[i].offset == scalar) number.offset_of = i;
    }
    exported_.numbers.push_back(number);
  }

  ExportedFunction::Source source_of(const BindingSource& source) {
    using Source = ExportedFunction::Source;
    if (source.kind == BindingSource::kArgument) return {Source::kArgument, function_.distinct()[source.index]};
    if (source.kind == BindingSource::kOutput) return {Source::kOutput, source.index};
    ensure(source.kind == BindingSource::kConstant, "a value of an archive is nothing");
    const auto [known, is_new] = constants_.emplace(source.constant.get(), static_cast<uint32_t>(exported_.constants.size()));
    if (is_new) exported_.constants.push_back(download(source.constant));
    return {Source::kConstant, known->second};
  }

  at::Tensor download(const BufferRef& buffer) const {
    const Type& type = type_of(buffer->type);
    at::Tensor tensor = at::empty(type.sizes, at::TensorOptions().dtype(to_scalar_type(type.dtype)).device(at::kCPU));
    device_.queue().download(buffer, tensor.mutable_data_ptr());
    return tensor;
  }

  const Binding* binding_of(size_t storage) const {
    const auto found = std::ranges::find(captured_.bindings, storage, &Binding::storage);
    return found == captured_.bindings.end() ? nullptr : &*found;
  }

  void add_results() {
    const auto& results = function_.results();
    for (size_t i = 0; i < results.size(); ++i) {
      const auto& result = results[i];
      TORCH_CHECK(result.kind == CapturedFunction::Result::kOwn, "result ", i, " is an argument: return a .clone() of it");
      const Binding* binding = binding_of(function_.distinct().size() + result.index);
      TORCH_CHECK(binding, "result ", i, " was never written (torch.empty)");
      TORCH_CHECK(is_whole(result.geometry, binding->type), "result ", i,
                  " is a view of a part of another tensor: return a .clone() of it");
      exported_.results.push_back(source_of(binding->source));
    }
  }

  void add_updates() {
    for (const Binding& binding : captured_.bindings) {
      if (binding.storage >= function_.distinct().size()) continue;
      const uint32_t argument = function_.distinct()[binding.storage];
      TORCH_CHECK(same_shape(type_of(binding.type), type_of(function_.arguments()[argument].held.type)), "tensor ", argument,
                  " gets other sizes or another dtype");
      exported_.updates.push_back({argument, source_of(binding.source)});
    }
  }

  LazyDevice& device_;
  const CapturedFunction& function_;
  const Captured& captured_;
  ExportedFunction exported_;
  std::map<const Buffer*, uint32_t> constants_;
};

deploy::NamedTensor named(const std::pair<std::string, at::Tensor>& tensor) {
  const auto& [name, value] = tensor;
  const TypeId type = intern_contiguous(to_dtype(value.scalar_type()), {value.sizes().data(), value.sizes().size()});
  return {name, type, {static_cast<const char*>(value.const_data_ptr()), value.nbytes()}};
}

}  // namespace

void rewind_generators(const CapturedFunction& function) {
  const Captured& captured = function.captured();
  for (auto use = captured.rng_uses.rbegin(); use != captured.rng_uses.rend(); ++use) {
    auto& generator = *static_cast<at::Generator*>(use->generator.get());
    std::lock_guard lock(generator.mutex());
    static_cast<LazyGenerator*>(generator.unsafeGetGeneratorImpl())
        ->set_offset(static_cast<uint64_t>(captured.scalars[use->offset].i));
  }
}

ExportedFunction export_function(LazyDevice& device, const CapturedFunction& function) {
  return Exporter(device, function).run();
}

GraphNumbers graph_numbers(const std::string& graph) {
  ByteReader in(graph);
  const GraphSkeleton skeleton(read_graph(in));
  GraphNumbers result{{reinterpret_cast<const char*>(skeleton.structure.data()), skeleton.structure.size() * sizeof(uint32_t)},
                      skeleton.numbers,
                      {}};
  for (const ltc_symbolic_number& place : skeleton.places) result.places.push_back({place.owner, place.attr, place.element});
  return result;
}

void write_archive(const std::string& path, const std::vector<ArchiveEntry>& entries) {
  std::vector<deploy::NewEntry> written;
  std::vector<std::string> headers;
  headers.reserve(entries.size());
  for (const ArchiveEntry& entry : entries) {
    if (!entry.is_tensors) {
      written.push_back({entry.name, {entry.bytes}});
      continue;
    }
    std::vector<deploy::NamedTensor> tensors;
    for (const auto& tensor : entry.tensors) {
      TORCH_CHECK(tensor.second.is_contiguous() && tensor.second.is_cpu(), "tensor ", tensor.first, " of an archive");
      tensors.push_back(named(tensor));
    }
    headers.push_back(deploy::safetensors_header(tensors));
    written.push_back({entry.name, {headers.back()}});
    for (const deploy::NamedTensor& tensor : tensors) written.back().parts.push_back(tensor.data);
  }
  deploy::write_zip(path, written);
}

}  // namespace ltc
