/* A graph made ready to run: which kernel on which values, in order. Immutable once made; any thread may run it. */
#ifndef MINIMAL_PLAN_H
#define MINIMAL_PLAN_H

#include "ltc/symbolic.h"
#include "minimal.h"
#include "profile.h"

/* Per node of the graph 1 where the table of ops has a row that matches it, else 0. False when out of memory. */
bool plan_claims(const ltc_graph* graph, uint32_t* claimed);

/* The first node that has no such row; LTC_NONE where all have, or when out of memory, of which plan_create then tells. */
size_t plan_refused(const ltc_graph* graph);

struct plan;
/* The plan of a graph whose nodes are all claimed; `sizes`: its symbolic sizes, or NULL. One reference; NULL when out of memory.
 */
struct plan* plan_create(const ltc_graph* graph, const ltc_symbolic_sizes* sizes);

size_t plan_symbol_count(const struct plan* plan);
/* The plan with these values of its symbols; itself where it has none. One reference; NULL when out of memory. */
struct plan* plan_with_sizes(struct plan* plan, const int64_t* symbols);
struct plan* plan_retain(struct plan* plan);
void plan_release(struct plan* plan);

size_t plan_param_count(const struct plan* plan);
bool plan_param_is_number(const struct plan* plan, size_t param);
size_t plan_output_count(const struct plan* plan);
/* Their types; there is no data yet. */
const struct array* plan_param(const struct plan* plan, size_t param);
const struct array* plan_output(const struct plan* plan, size_t output);

/* `data`: the elements of each param, and behind them room for those of each output. On failure false, and in `failure` why the
 * first step failed and which outputs do not depend on any that did. `profile`: told of each step; its functions may be NULL. */
bool plan_run(const struct plan* plan, void* const* data, const ltc_run_profile* profile, struct failure* failure);

#endif
