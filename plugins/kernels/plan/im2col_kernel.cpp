#include "kernels/plan/im2col_kernel.h"

#include "kernels/fuse/products.h"
#include "kernels/graph/dtype.h"

namespace ltc::kernels {
namespace {

std::string number(int64_t value) { return value < 0 ? "(" + std::to_string(value) + ")" : std::to_string(value); }
std::string times(const std::string& what, int64_t factor) { return factor == 1 ? what : what + " * " + number(factor); }

// Which column a lane stands for is taken apart once for a tile; for each place in the window it is then moved by as much for all
// lanes, which compilers turn into vectors.
class Printer {
 public:
  explicit Printer(const Im2colKernel& kernel) : kernel_(kernel), how_(kernel.windows), dims_(how_.in.size()) {}

  // Columns of a product, and tiles of them.
  int64_t columns() const { return (how_.by_image ? 1 : kernel_.images) * count_of(how_.out); }
  int64_t tiles() const { return (columns() + kernel_.tile_columns - 1) / kernel_.tile_columns; }

  std::string body() const {
    const std::string lanes = std::to_string(kernel_.tile_columns);
    const std::string each = "for (ix r = 0; r < " + lanes + "; ++r) {\n";
    std::string text = "  ix from[" + lanes + "]";
    for (size_t dim = 0; dim < dims_; ++dim) text += ", at" + std::to_string(dim) + "[" + lanes + "]";
    text += ";\n  " + each + lane() + "  }\n" + to() + loops();
    return text + "    " + each + element() + "    }\n    to += " + lanes + ";\n  }\n";
  }

 private:
  static std::string at(size_t dim) { return "at" + std::to_string(dim) + "[r]"; }
  static std::string step(size_t dim) { return "step" + std::to_string(dim); }

  // Behind the last column the last one is read again.
  std::string lane() const {
    const int64_t points = count_of(how_.out);
    std::string text = "    const ix column = i0 % " + number(tiles()) + " * " + number(kernel_.tile_columns) +
                       " + r, c = column < " + number(columns()) + " ? column : " + number(columns() - 1) + ";\n";
    int64_t below = points;
    for (size_t dim = 0; dim < dims_; ++dim) {
      below /= how_.out[dim];
      const std::string place = "c / " + number(below) + " % " + number(how_.out[dim]);
      text += "    " + at(dim) + " = " +
              (how_.transposed ? place + " + " + number(how_.padding[dim])
                               : times(place, how_.stride[dim]) + " - " + number(how_.padding[dim])) +
              ";\n";
    }
    text += "    from[r] = " + (how_.by_image ? "0" : times("c / " + number(points), kernel_.image_stride));
    for (size_t dim = 0; dim < dims_; ++dim) {
      if (!is_sparse(dim)) text += " + " + times(at(dim), kernel_.strides[dim]);
    }
    return text + ";\n";
  }

  std::string to() const {
    const int64_t length = how_.channels * count_of(how_.kernel);
    return "  GLOBAL " + std::string(facts(kernel_.dtype).name) + "* to = b1 + i0 * " + number(length * kernel_.tile_columns) +
           ";\n  const ix image = " + number(kernel_.offset) + " + " +
           times("i0 / " + number(tiles()), how_.by_image ? kernel_.image_stride : how_.channels * kernel_.channel_stride) +
           ";\n";
  }

  std::string loops() const {
    std::string text = "  for (ix channel = 0; channel < " + number(how_.channels) + "; ++channel)\n";
    std::string moved = "image + " + times("channel", kernel_.channel_stride);
    for (size_t dim = 0; dim < dims_; ++dim) {
      const std::string k = "k" + std::to_string(dim);
      text += "  for (ix " + k + " = 0; " + k + " < " + number(how_.kernel[dim]) + "; ++" + k + ")\n";
    }
    text += "  {\n";
    for (size_t dim = 0; dim < dims_; ++dim) {
      const int64_t factor = how_.transposed ? -how_.dilation[dim] : how_.dilation[dim];
      text += "    const ix " + step(dim) + " = " + times("k" + std::to_string(dim), factor) + ";\n";
      if (!is_sparse(dim)) moved += " + " + times(step(dim), kernel_.strides[dim]);
    }
    return text + "    const ix moved = " + moved + ";\n";
  }

  std::string element() const {
    std::string inside, place = "from[r] + moved";
    const auto holds = [&](const std::string& condition) { inside += (inside.empty() ? "" : " & ") + condition; };
    for (size_t dim = 0; dim < dims_; ++dim) {
      const std::string here = "(u32)(" + at(dim) + " + " + step(dim) + ")";
      if (is_sparse(dim)) {
        const std::string stride = number(how_.stride[dim]) + "u";
        holds("(" + here + " < " + number((how_.in[dim] - 1) * how_.stride[dim] + 1) + "u)");
        holds("(" + here + " % " + stride + " == 0)");
        place +=
            " + (ix)(" + here + " / " + stride + ")" + (kernel_.strides[dim] == 1 ? "" : " * " + number(kernel_.strides[dim]));
      } else if (may_be_outside(dim)) {
        holds("(" + here + " < " + number(how_.in[dim]) + "u)");
      }
    }
    const std::string read = "b0[" + place + "]";
    return "      to[r] = " + (inside.empty() ? read : inside + " ? " + read + " : 0") + ";\n";
  }

  // Only every stride-th place has an element of the image.
  bool is_sparse(size_t dim) const { return how_.transposed && how_.stride[dim] != 1; }

  bool may_be_outside(size_t dim) const {
    const int64_t reach = (how_.kernel[dim] - 1) * how_.dilation[dim], pad = how_.padding[dim];
    if (how_.transposed) return pad < reach || how_.out[dim] - 1 + pad >= how_.in[dim];
    return pad > 0 || (how_.out[dim] - 1) * how_.stride[dim] + reach - pad >= how_.in[dim];
  }

  const Im2colKernel& kernel_;
  const Windows& how_;
  const size_t dims_;
};

}  // namespace

std::optional<Im2colKernel> im2col_kernel(const Graph& graph, ValueId columns, ValueId tiles) {
  const Value &from = graph.values[columns], &to = graph.values[tiles];
  if (from.producer == kNone || graph.nodes[from.producer].kind != Kind::kWindows) return std::nullopt;
  const Node& node = graph.nodes[from.producer];
  const auto image = strided_view(graph, node.in[0]);
  if (!image || to.count > INT32_MAX || graph.values[image->value].count > INT32_MAX) return std::nullopt;
  Im2colKernel kernel{from.dtype, windows_of(graph, node), image->value, graph.values[node.in[0]].sizes[0], to.sizes[3]};
  kernel.offset = image->offset;
  kernel.image_stride = image->strides[0];
  kernel.channel_stride = image->strides[1];
  kernel.strides.assign(image->strides.begin() + 2, image->strides.end());
  return kernel;
}

Source render_im2col(const Im2colKernel& kernel, const Dialect& dialect) {
  const std::string type(facts(kernel.dtype).name);
  const std::string in = "GLOBAL const " + type + "*", out = "GLOBAL " + type + "*";
  const std::string arguments = dialect.arguments_in_array ? "  " + in + " b0 = (" + in + ")args[0];\n  " + out + " b1 = (" +
                                                                 out + ")args[1];\n  const ix items = *(const ix*)args[2];\n"
                                                           : in + " RESTRICT b0, " + out + " RESTRICT b1, const ix items";
  const Printer printer(kernel);
  const int64_t products = kernel.windows.by_image ? kernel.images : kernel.windows.groups;
  return {framed(arguments, printer.body(), false, dialect), {products * printer.tiles()}, false};
}

}  // namespace ltc::kernels
