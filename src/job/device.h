/**
 * Devices: what nodes have, one record each, as their agents report it with every heartbeat.
 *
 * A device is known by its *id* (a GPU's UUID, a network card's name) and has an *index* on its
 * node, which it keeps for as long as its record is there: what a task was given is told by it.
 * A device that a heartbeat no longer names is *gone*; its record stays for WEIR_DEVICE_GONE_MS,
 * so that the same device gets its index again. Slices of a device (MIG) are devices of their own,
 * which name the whole one as their parent.
 *
 * What placement has to know of a node's accelerators stands beside it in the node's record as one
 * text (weir_node.accelerators), which changes only when one of them does:
 * [[idx, kind, model, memory_bytes, parent, profile, numa, state], …].
 *
 * Times and states are the server's: an agent says what it sees, weir_devices_report what changed.
 */
#ifndef WEIR_JOB_DEVICE_H
#define WEIR_JOB_DEVICE_H

#include "base/arena.h"
#include "base/record.h"
#include "store/store.h"

#define WEIR_DEVICE_OK   "ok"   /**< It can be given to tasks. */
#define WEIR_DEVICE_BAD  "bad"  /**< It is there, and should not be used; `reason` says why. */
#define WEIR_DEVICE_GONE "gone" /**< It was there. */

/** Most devices that one node reports, and most records of one node: the longest gone go first. */
#define WEIR_DEVICES_MAX     256
#define WEIR_DEVICE_ROWS_MAX 512

/** Records of what is gone are kept for a day. */
#define WEIR_DEVICE_GONE_MS ((int64_t)24 * 3600 * 1000)

#define WEIR_DEVICE_NOT_TOLD (-1)

#define WEIR_DEVICE_IDLE_PCT 5

struct weir_device {
    char *name; /**< "NODE/INDEX" */
    char *node;
    int64_t idx;
    char *id;
    char *kind;           /**< "cpu", "memory", "disk", "nic", "gpu", "mig", or "declared". */
    char *model;          /**< NULL: not told. */
    int64_t memory_bytes; /**< Its own; of a disk its size; 0: none, or not told. */
    int64_t parent;       /**< Index of the whole device that it is a slice of; -1: of none. */
    char *profile;        /**< Of a MIG slice: "1g.10gb". */
    int64_t numa;         /**< Node of the memory that it is nearest to; -1: not told. */
    char *state;          /**< WEIR_DEVICE_… */
    char *reason;         /**< A sentence, if it is not ok. */
    double temperature_c; /**< This and the next two: NaN if not told. */
    double power_w;
    double utilisation_pct;
    int64_t memory_used_bytes; /**< -1: not told. */
    int64_t ecc_errors;        /**< That could not be corrected, since the driver started; -1. */
    int64_t idle_since_ms;     /**< Since when it has computed for less than WEIR_DEVICE_IDLE_PCT of
                                    the time in each report; 0: it has not, or does not tell. */
    int64_t used_milli;        /**< Given to tasks, in thousandths (job/task_device.h). */
    char *holders;             /**< Those tasks: "JOB/RANK, …"; NULL: none. */
    char *details;             /**< JSON object: links, processes, speed … by kind; or NULL. */
    int64_t changed_ms;        /**< When it got into its state. */
};

extern const struct weir_resource weir_device_resource;

/** A device as an agent reports it: name, node, idx, parent and changed_ms are not read. */
struct weir_device_report {
    struct weir_device device;
    const char *parent_id; /**< Of a slice: the whole device's id; else NULL. */
};

/** Does it compute for tasks: is it of kind "gpu", "mig" or "declared"? */
bool weir_device_is_accelerator(const struct weir_device *device);

/** The devices of a node by index, also those that are gone. In the arena. */
weir_status weir_devices_of_node(struct weir_txn *txn, const char *node, struct weir_arena *arena,
                                 struct weir_device **out, size_t *out_n,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** Forget all of a node: it has left. */
weir_status weir_devices_forget(struct weir_txn *txn, const char *node,
                                struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Bring a node's devices up to date with what its agent sees; the node's own record must be there.
 *
 * A new id gets the lowest free index. State "gone" is set here and is not for agents. Each device that
 * came (unless all did), went, got bad or ok again leaves an event; records that did not change
 * are not written.
 *
 * @param n_reports  At most WEIR_DEVICES_MAX, with ids that differ; else INVALID.
 * @param out_is_news  An accelerator came, went, or changed in what placement looks at.
 */
weir_status weir_devices_report(struct weir_txn *txn, const char *node,
                                const struct weir_device_report *reports, size_t n_reports,
                                int64_t now_ms, struct weir_arena *arena, bool *out_is_news,
                                struct weir_error *err) WEIR_MUST_CHECK;

#endif
