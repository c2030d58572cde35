// Which ops become one kernel.
//
// Views, casts of one use and whatever else is cheap to compute again live where they are read. The rest, the candidates, is put
// into clusters: a candidate joins the cluster of what it reads where it needs, in each work item, just the elements that are
// there. Everything else gets a cluster of its own and meets the others through buffers.
#pragma once
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "emit.h"
#include "graph.h"

namespace ltc::kernels {

struct Options {
  Abilities abilities;
  // Whether a batched matrix product of this size is left to a library: batch, rows, columns, length.
  std::function<bool(ltc_dtype, int64_t, int64_t, int64_t, int64_t)> library_product;
  int64_t tile_columns = 0;    // how many columns of the second operand that library wants side by side
  bool blas_operands = false;  // it takes operands in the forms of BLAS only (products.h)
  // From so many points of its result on, each image of a convolution is a product of its own: see expand_convolution.
  int64_t points_by_image = INT64_MAX;
  int64_t split_threads = 0;   // above 0: few long rows are split, so that about so many threads share them (split.h)
  bool block_sorts = false;    // sorts by the lanes of blocks (block_sort.h), where a dialect has them
  bool check_indices = false;  // elements of an index that name no place are reported (emit.h)
  Extras extras = {};
  // What the library of products does besides; see epilogues.h. It may do the functions less exactly than the generator's
  // kernels.
  struct {
    bool bias = false, activations = false;
  } epilogues = {};
  // What the program allows: operands in TF32, and sums of halves in parts that are rounded to halves.
  struct {
    bool products_in_tf32 = false, convolutions_in_tf32 = false, sums_in_f16 = false, sums_in_bf16 = false;
  } rounding = {};
};

struct Cluster {
  enum class Form : uint8_t {
    kMap,    // a work item per element
    kRows,   // a work item per row of a reduction; it loops over the row, perhaps several times
    kAlone,  // one node: a scan, scatter, sort, or product of a library
  };
  Form form;
  NodeId rows_of = kNone;         // kRows: the reduction; kAlone: the node
  int64_t items = 0, length = 1;  // rows and their length, or elements
  std::vector<ValueId> members;   // in the order of the graph
  std::vector<ValueId> stored;    // of those, what others read
  std::set<ValueId> leaves;       // buffers read
};

struct Fusion {
  std::vector<Cluster> clusters;   // in an order to run them in
  std::vector<bool> is_stored;     // by value: lies in a buffer
  std::vector<std::string> notes;  // why candidates stand apart

  // What was decided, for people.
  std::string text(const Graph& graph) const;
};

Fusion fuse(const Graph& graph, const Options& options);

// Where the elements of a cluster's members lie, by its variables.
struct Positions {
  Index row, full;  // of a value with an element per row; of one with an element per element of a row
  bool is_row(const Cluster& cluster, const Value& value) const { return value.count == cluster.items; }
};
Positions positions_of(const Graph& graph, const Cluster& cluster, const Index& item, const Index& r, IndexSpace& space);

}  // namespace ltc::kernels
