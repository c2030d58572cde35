#include "kernels/graph/reads.h"

#include <algorithm>

#include "kernels/graph/dtype.h"
#include "kernels/graph/im2col.h"

namespace ltc::kernels {
namespace {

size_t wrap(int64_t dim, size_t rank) { return static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(rank) : dim); }

// Dims are matched from the last; those of size 1 repeat.
Coords broadcast(const Coords& at, const Sizes& to) {
  const size_t lacking = at.size() - to.size();
  Coords result(to.size());
  for (size_t dim = 0; dim < to.size(); ++dim) {
    if (to[dim] != 1) result[dim] = at[lacking + dim];
  }
  return result;
}

std::vector<Read> padded(const Graph& graph, const Node& node, const Coords& at, IndexSpace& space) {
  const Sizes& sizes = graph.values[node.in[0]].sizes;
  const auto& pad = node.integers("pad");
  Read read{node.in[0], at};
  for (size_t i = 0; 2 * i < pad.size(); ++i) {
    const size_t dim = sizes.size() - 1 - i;
    if (pad[2 * i] == 0 && pad[2 * i + 1] == 0) continue;
    const Index inside = space.shifted(at[dim], -pad[2 * i]);
    read.when.push_back({inside, sizes[dim]});
    read.at[dim] = space.within(inside, sizes[dim]);
  }
  return {read};
}

std::vector<Read> joined(const Graph& graph, const Node& node, const Coords& at, IndexSpace& space) {
  std::vector<Read> reads;
  const size_t dim = dim_of(node, "dim", 0, at.size());
  int64_t begin = 0;
  for (const ValueId operand : node.in) {
    const int64_t size = graph.values[operand].sizes[dim];
    const Index inside = space.shifted(at[dim], -begin);
    begin += size;
    if (size == 0) continue;
    Read read{operand, at, {{inside, size}}};
    read.at[dim] = space.within(inside, size);
    reads.push_back(std::move(read));
  }
  return reads;
}

// Columns in tiles: at is batch, tile, row, column of the tile. Behind the last column there is nothing.
Read packed(const Graph& graph, const Node& node, const Coords& at, IndexSpace& space) {
  const Sizes &from = graph.values[node.in[0]].sizes, &to = graph.values[node.out[0]].sizes;
  const Index column = space.sum(space.scaled(at[1], to[3]), at[3]);
  return {node.in[0], {at[0], at[2], space.within(column, from[2])}, {{column, from[2]}}};
}

Read strided(const Graph& graph, const Node& node, const Coords& at, IndexSpace& space) {
  const auto& strides = node.integers("stride");
  Index position{node.integer("storage_offset", 0), {}};
  for (size_t dim = 0; dim < at.size(); ++dim) position = space.sum(position, space.scaled(at[dim], strides[dim]));
  return {node.in[0], space.split(position, graph.values[node.in[0]].sizes)};
}

// at: group; channel and place in the window; image and place in the result. By image: image; the same; place.
Read window(const Graph& graph, const Node& node, const Coords& at, IndexSpace& space) {
  const Windows how = windows_of(graph, node);
  const size_t dims = how.in.size();
  Sizes channel_and_kernel{how.channels}, image_and_place{how.by_image ? 1 : graph.values[node.in[0]].sizes[0]};
  channel_and_kernel.insert(channel_and_kernel.end(), how.kernel.begin(), how.kernel.end());
  image_and_place.insert(image_and_place.end(), how.out.begin(), how.out.end());
  const Coords in_window = space.split(at[1], channel_and_kernel), out = space.split(at[2], image_and_place);
  const Index image = how.by_image ? at[0] : out[0], group = how.by_image ? Index{} : at[0];
  Read read{node.in[0], {image, space.sum(space.scaled(group, how.channels), in_window[0])}};
  for (size_t dim = 0; dim < dims; ++dim) {
    const Index step = space.scaled(in_window[dim + 1], how.dilation[dim]);
    Index place;
    if (how.transposed) {
      const Index ahead = space.shifted(space.sum(out[dim + 1], space.scaled(step, -1)), how.padding[dim]);
      place = space.quotient(ahead, how.stride[dim]);
      read.when.push_back({ahead, (how.in[dim] - 1) * how.stride[dim] + 1, how.stride[dim]});
    } else {
      place = space.shifted(space.sum(space.scaled(out[dim + 1], how.stride[dim]), step), -how.padding[dim]);
      read.when.push_back({place, how.in[dim]});
    }
    read.at.push_back(space.within(place, how.in[dim]));
  }
  return read;
}

Coords moved(const Graph& graph, const Node& node, const Coords& at, IndexSpace& space) {
  const Sizes &in = graph.values[node.in[0]].sizes, &out = graph.values[node.out[0]].sizes;
  Coords from = at;
  if (node.kind == Kind::kReshape) return space.split(space.linear(at, out), in);
  if (node.kind == Kind::kExpand) return broadcast(at, in);
  if (node.kind == Kind::kPermute) {
    const auto& dims = node.integers("dims");
    for (size_t i = 0; i < dims.size(); ++i) from[wrap(dims[i], in.size())] = at[i];
  } else if (node.kind == Kind::kSlice) {
    const size_t dim = dim_of(node, "dim", 0, in.size());
    from[dim] = space.shifted(space.scaled(at[dim], node.integer("step", 1)), node.integer("start", 0));
  } else if (node.kind == Kind::kFlip) {
    for (const int64_t dim : node.integers("dims")) {
      const size_t d = wrap(dim, in.size());
      from[d] = space.shifted(space.scaled(at[d], -1), in[d] - 1);
    }
  }
  return from;
}

}  // namespace

size_t dim_of(const Node& node, std::string_view attr, int64_t otherwise, size_t rank) {
  return wrap(node.integer(attr, otherwise), rank);
}

std::vector<Read> reads_of(const Graph& graph, const Node& node, const Coords& at, IndexSpace& space) {
  switch (node.kind) {
    case Kind::kMap:
    case Kind::kCast:
    case Kind::kBits: {
      std::vector<Read> reads;
      for (const ValueId operand : node.in) reads.push_back({operand, broadcast(at, graph.values[operand].sizes)});
      return reads;
    }
    case Kind::kReshape:
    case Kind::kPermute:
    case Kind::kExpand:
    case Kind::kSlice:
    case Kind::kFlip: return {{node.in[0], moved(graph, node, at, space)}};
    case Kind::kStrided: return {strided(graph, node, at, space)};
    case Kind::kPad: return padded(graph, node, at, space);
    case Kind::kCat: return joined(graph, node, at, space);
    case Kind::kPack: return {packed(graph, node, at, space)};
    case Kind::kWindows: return {window(graph, node, at, space)};
    default: return {};
  }
}

Read gathered(const Graph& graph, const Node& node, const Coords& at, const Index& picked) {
  Read read{node.in[0], at};
  if (!at.empty()) read.at[dim_of(node, "dim", 0, at.size())] = graph.values[node.in[0]].sizes.empty() ? Index{} : picked;
  return read;
}

std::vector<size_t> row_dims(const Graph& graph, const Node& node) {
  const size_t rank = graph.values[node.in[0]].sizes.size();
  std::vector<size_t> dims;
  for (const int64_t dim : node.integers("dim")) {
    if (rank) dims.push_back(wrap(dim, rank));
  }
  if (dims.empty()) {
    for (size_t dim = 0; dim < rank; ++dim) dims.push_back(dim);
  }
  std::ranges::sort(dims);
  return dims;
}

int64_t row_length(const Graph& graph, const Node& node) {
  int64_t length = 1;
  for (const size_t dim : row_dims(graph, node)) length *= graph.values[node.in[0]].sizes[dim];
  return length;
}

Read row_element(const Graph& graph, const Node& node, const Coords& at, const Index& r, IndexSpace& space) {
  const Sizes& sizes = graph.values[node.in[0]].sizes;
  const auto dims = row_dims(graph, node);
  Sizes reduced;
  for (const size_t dim : dims) reduced.push_back(sizes[dim]);
  const Coords along = space.split(r, reduced);
  const bool keeps = at.size() == sizes.size();  // with keepdim, and of a scan
  Read read{node.in[0], Coords(sizes.size())};
  for (size_t dim = 0, next = 0, kept = 0; dim < sizes.size(); ++dim) {
    if (next < dims.size() && dims[next] == dim) {
      read.at[dim] = along[next++];
      kept += keeps;
    } else {
      read.at[dim] = at[kept++];
    }
  }
  return read;
}

bool reads_other_size(const Graph& graph, const Node& node) {
  return node.kind == Kind::kBits && bits_of(graph.values[node.in[0]].dtype) != bits_of(graph.values[node.out[0]].dtype);
}

}  // namespace ltc::kernels
