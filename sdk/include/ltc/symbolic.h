/* Extension 2: one executable for many sizes.
 *
 * Each new batch size is a new graph, and without this it is lowered and compiled anew. For a plugin that lists the kind in
 * ltc_plugin_api::ext the host compares a graph with those of the same structure that it has compiled: the same ops, operands,
 * dtypes and ranks. Numbers in which the two differ, sizes of values and whole numbers among the attributes, become formulas of
 * symbols. The plugin lowers and compiles that general graph once, and runs it for each further size.
 *
 * lower     Where ltc_lower_args::ext has an ltc_symbolic_sizes, the graph is one example: the numbers that the struct lists are
 *           scale * symbol + offset, all others are as they stand. Where it has none, the graph is meant as it is.
 * execute   ltc_execute_args::ext has an ltc_symbol_values exactly where the executable comes from a graph with symbols. The
 *           sizes of inputs and outputs, and the numbers in attributes, are then those of the formulas.
 *
 * Formulas are guesses from two examples, and never trusted: before a run with new sizes the host makes the graph that they need,
 * with all its passes and claims, and compares every number of it with the formulas. A wrong guess is one more compile, never a
 * wrong result. So with the values of a run put in, the graph is one that the host would have lowered as it is.
 *
 * A value may be anything that gives such a graph, 0 and 1 too. In the example, and in the one before it, symbolic sizes are 2
 * and more. Thus the example shows what broadcasts: a symbolic dim meets a dim of its own formula, or one that is 1 for ever.
 *
 * A plugin that cannot do it for some graph answers UNSUPPORTED, of a node or not, and is given the graph as it is. */
#ifndef LTC_SYMBOLIC_H
#define LTC_SYMBOLIC_H
#include "ltc/plugin.h"

#define LTC_EXTENSION_SYMBOLIC 2u

/* A number of the graph that is scale * symbol + offset. Frozen. */
typedef struct ltc_symbolic_number {
  uint32_t owner;   /* a size: the id of its value. A number of an attribute: the index of its node */
  uint32_t attr;    /* LTC_NONE for a size; else the index among the node's attributes, which is INT(S) or FLOAT(S) */
  uint32_t element; /* which dim of the value, or element of the attribute */
  uint32_t symbol;  /* below symbol_count */
  int64_t scale;    /* never 0 */
  int64_t offset;
} ltc_symbolic_number;

/* Chained into ltc_lower_args::ext. */
typedef struct ltc_symbolic_sizes {
  ltc_extension head; /* kind LTC_EXTENSION_SYMBOLIC, version 1 */
  size_t symbol_count;
  size_t number_count;
  const ltc_symbolic_number* numbers;
} ltc_symbolic_sizes;

/* Chained into ltc_execute_args::ext. */
typedef struct ltc_symbol_values {
  ltc_extension head; /* kind LTC_EXTENSION_SYMBOLIC, version 1 */
  size_t symbol_count;
  const int64_t* values; /* by symbol; borrowed until execute returns */
} ltc_symbol_values;

#endif /* LTC_SYMBOLIC_H */
