/* Extension 4: the plugin carries out collectives between processes.
 *
 * The processes of a distributed program are the ranks of groups. They sum and copy values among each other, in collectives,
 * which are nodes of the graph: the ops below. Without this extension the host carries them out: over sockets, with copies of the
 * values in its own memory. A plugin that has links of its own lists the kind with an ltc_collectives. So this entry of the list
 * is no bare head: it brings functions.
 *
 * Groups   Before the first collective of a group on a device is lowered, all ranks call group_create, each in its own process
 * for its own device. Does it fail for any of them, the others destroy theirs again, and the host carries out the collectives of
 * that group. The attribute `group` of a node is the number of a group of that device, or one that the plugin was never given:
 * such nodes are not to be claimed. The ranks of a group have plugins of one name and version. Numbers are of the process: ranks
 * may have different ones for one group, and a number is never given twice. In another process it may be that of another group,
 * so an executable looks its group up when it runs.
 *
 * Order    All ranks call the same collectives of a group in the same order: that of the calls of execute, and in one graph that
 *          of the nodes, where each takes the `token` of the one before. Collectives of different groups of one device are also
 *          in one order. A token is a U8[1] of any contents.
 *
 * Claims   Ranks have graphs that differ elsewhere, but they claim the same collectives of a group: the answer depends on the
 *          node's op, types and attributes alone.
 *
 * Failure  A collective fails, with TIMEOUT or CANCELLED, when another rank has not come for timeout_ns, when a rank is lost, or
 *          by group_abort. Then all later ones of the group fail too. Others of the device go on.
 *
 * The ops, with `?` for what may be absent. All values are dense, and each node has the results (result, token), of which one may
 * be unwanted: the rank takes part all the same. `op` is "sum",
 * "product", "min", "max", "band", "bor" or "bxor"; sums of halves may be kept in halves.
 *
 *   ltc_c10d::all_reduce(input, after?) {op, group}                as input: the reduction over the ranks, the same bits at each
 *   ltc_c10d::broadcast(input, after?) {root, group}               as input: that of the rank `root`
 *   ltc_c10d::all_gather(input, after?) {ranks, group}             [ranks, ...input]: those of all, by rank
 *   ltc_c10d::reduce_scatter(input, after?) {op, group}            input [ranks, ...] -> [...]: the reduction of its own row
 *   ltc_c10d::all_to_all(input, after?) {to, from_, group}         rows: to[i] of them go to rank i, from_[i] come from it
 *
 * Each has a second form, ltc_c10d::all_reduce_start and so on, that may return before the collective is over. Its result is
 * complete in the result of ltc_c10d::wait(pending) {group}, which may be the same memory; nothing else reads it. A plugin claims
 * both forms, or the host does not use the second. */
#ifndef LTC_COLLECTIVE_H
#define LTC_COLLECTIVE_H
#include "ltc/plugin.h"

#define LTC_EXTENSION_COLLECTIVE 4u

typedef struct ltc_group ltc_group; /* the plugin's side of one group, for one device */

/* Where the ranks of a group leave bytes for each other: addresses, the id of a communicator. It goes through sockets to one
 * process, and is slow. Keys are of the group. The functions may be called from any thread until group_destroy returns. */
typedef struct ltc_store {
  size_t struct_size;
  void* store; /* first argument of the functions */
  /* Leaves bytes under a key, in place of what was there; copied. false: the store is gone. */
  bool(LTC_CALL* set)(void* store, const ltc_string* key, const ltc_string* value);
  /* Waits until some rank has set the key. false: the time is over, or the store is gone. */
  bool(LTC_CALL* get)(void* store, const ltc_string* key, uint64_t timeout_ns, const ltc_sink* value);
  /* Forgets a key, if it is there. */
  void(LTC_CALL* erase)(void* store, const ltc_string* key);
} ltc_store;

typedef struct ltc_group_args {
  size_t struct_size;
  const ltc_extension* ext;
  int64_t number;         /* as the attribute `group` of nodes */
  uint32_t rank;          /* below size: of this process */
  uint32_t size;          /* how many ranks; 2 or more */
  uint64_t timeout_ns;    /* how long group_create and a collective wait for the other ranks */
  const ltc_store* store; /* until group_destroy returns */
} ltc_group_args;

/* The plugin's entry of its list of extensions. All three functions are there. They live as the plugin's table. */
typedef struct ltc_collectives {
  ltc_extension head; /* kind LTC_EXTENSION_COLLECTIVE, version 1, struct_size of the whole */

  /* Joins a group. Returns when all ranks have, or with an error.
   * group  out: the caller's, until group_destroy.
   * Codes: UNSUPPORTED it cannot, for want of a library or a link; TIMEOUT not all ranks came; RESOURCE_EXHAUSTED; DEVICE_LOST.
   * Blocks, while other calls of the device go on: not called with LTC_PLUGIN_ONE_CALL_AT_A_TIME, where the host does it all. */
  ltc_status*(LTC_CALL* group_create)(ltc_device* device, const ltc_group_args* args, ltc_group** group);

  /* Makes the collectives of a group fail that are queued or running, and all later ones. From any thread; it does not wait. */
  void(LTC_CALL* group_abort)(ltc_group* group);

  /* Ends a group. Its collectives are over or aborted. Nodes with its number are claimed no more. Before device_close; for a lost
   * device too. */
  void(LTC_CALL* group_destroy)(ltc_group* group);
} ltc_collectives;

#endif /* LTC_COLLECTIVE_H */
