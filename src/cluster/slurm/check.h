/** Can a cluster be used as its options say: what lacks, and what can be guessed. For the driver's own files. */
#ifndef WEIR_CLUSTER_SLURM_CHECK_H
#define WEIR_CLUSTER_SLURM_CHECK_H

#include "cluster/slurm/options.h"

/** The oldest Slurm: since 21.08 a step gets all that its job has of a node, unless it says otherwise. */
#define SLURM_VERSION_MIN 2108

/** ops->check. It ends at the first thing that lacks. */
weir_status slurm_check(const struct slurm_options *options, struct weir_arena *arena,
                        const char **out_missing, struct weir_error *err);

/** ops->guess. */
weir_status slurm_guess(json_t *document, struct weir_arena *arena, struct weir_error *err);

/** Path of the authentication service's socket, as slurm.conf says it ("AuthInfo=socket=…"), or its default. In the arena.
 *  Pure. */
const char *slurm_munge_socket(const char *conf, struct weir_arena *arena);

/** What `scontrol -o show partition` says against that account and QOS, a sentence; NULL: nothing. In the arena. Pure. */
const char *slurm_partition_refuses(const char *text, const struct slurm_payer *payer,
                                    struct weir_arena *arena);

/** When slurmctld printed its configuration ("Configuration data as of 1796003889"), since 1970; 0: it does not say. Pure. */
int64_t slurm_config_time_ms(const char *text);

/**
 * Whom the user is in Slurm, by `sacctmgr show user name=… withassoc format=defaultaccount,account,defaultqos`: account and
 * QOS, "" for none. In the arena. Pure.
 * @param account  The QOS of this one; NULL: of the user's default one.
 */
void slurm_association_read(const char *text, const char *account, struct weir_arena *arena,
                            const char **out_account, const char **out_qos);

#endif
