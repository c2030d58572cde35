// A graph as steps over buffers: what a plugin runs.
#pragma once
#include <string>
#include <variant>
#include <vector>

#include "kernels/fuse/attention.h"
#include "kernels/fuse/collective.h"
#include "kernels/fuse/epilogues.h"
#include "kernels/fuse/fuse.h"
#include "kernels/fuse/library_convolution.h"
#include "kernels/graph/graph.h"
#include "kernels/graph/im2col.h"
#include "kernels/graph/ir.h"
#include "kernels/graph/strided.h"
#include "kernels/plan/emit.h"

namespace ltc::kernels {

// Sorts rows of `length` elements that lie `stride` apart. Buffers of the step: the elements, sorted ones, positions (I64), and
// two for work (I32, as many as elements).
struct SortKernel {
  ltc_dtype dtype;
  int64_t rows, length, stride;
  bool descending;
};

// One pass of a sort by blocks (block_sort.h). With `run` 0 it sorts the tiles of the rows. With `run` above 0 it merges pairs of
// sorted runs of that many elements. Buffers of the step, in order: the input, then the output. The input of the first pass is
// the elements; of a merge it is keys and positions (I32) of the runs, row after row. The output is keys and positions (I32) of
// longer runs; of the last pass it is sorted elements and positions (I64).
struct SortPass {
  SortKernel of;
  int64_t run;
  bool last;
};

// c[i] = a[i] b[i] for a batch of matrices, by a library. Buffers of the step: those that a and b lie in, c. With
// Options::tile_columns the second is [batch, tiles, length, tile_columns] instead, with anything behind its last column, and `b`
// says nothing; c is row-major. Behind c the scales, the vector and the matrix of the epilogue, if it has them.
struct Product {
  ltc_dtype dtype;  // of a, and of b unless they are scaled
  int64_t batch, rows, columns, length;
  StridedMatrix a, b;
  ltc_dtype result;     // of c: the same, or F32 where they are halves
  bool rounds = false;  // as Options::rounding allows for the dtype
  Epilogue epilogue = {};
  // Not 0: a and b are floats of 8 bits, b of this dtype, and times a scale each, an F32 in memory (scaled_product.h). c is F32
  // or of halves, and `rounds` says that sums may be kept in less than F32.
  ltc_dtype scaled_b = 0;
  bool operator==(const Product&) const = default;
};

// The columns of a convolution's windows in tiles, as Product wants them: row k of a tile is the place k of the window, for as
// many columns as a tile has. Buffers of the step: that of the image, the tiles.
struct Im2colKernel {
  ltc_dtype dtype;
  Windows windows;
  ValueId image;
  int64_t images, tile_columns;
  int64_t offset = 0, image_stride = 0, channel_stride = 0;
  Sizes strides = {};  // one per dim of space
};

struct Step {
  std::variant<Kernel, SortKernel, SortPass, Im2colKernel, Product, AttentionKernel, LibraryConvolution, Collective> work;
  std::vector<KernelBuffer> buffers;
  std::vector<KernelScalar> scalars;
  uint32_t source;    // a node of the graph of the ABI that it computes
  std::string label;  // the ops in it
  std::vector<uint32_t> nodes =
      {};                 // of the graph of the ABI that it computes, ascending; a step that prepares another has its nodes
  std::string note = {};  // why it is not one with the step that makes its inputs; may be empty
};

struct Plan {
  Graph graph;    // with values for work besides those of the ABI
  Faults faults;  // with Options::check_indices
  Fusion fusion;
  std::vector<Step> steps;          // those without elements are left out
  std::vector<ValueId> takes_over;  // by output: the param whose memory it may take if that is donated, or kNone; see in_place.h

  // A value that lies in a buffer and is not of the graph of the ABI.
  ValueId add_work(ltc_dtype dtype, const Sizes& sizes);
};

}  // namespace ltc::kernels
