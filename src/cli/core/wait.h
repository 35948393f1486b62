/**
 * Waiting that speaks. Whoever makes a person wait says on standard error why, at once and whenever the reason
 * is another, and what has become of it when the wait is over: "weir: job train waits: needs 1 CPU, …".
 *
 *     struct cli_wait wait = {.what = "job train"};
 *     while (…) {
 *         cli_wait_tell(call, &wait, cli_job_waits(job));
 *     }
 */
#ifndef WEIR_CLI_WAIT_H
#define WEIR_CLI_WAIT_H

#include "cli/command.h"

/** One wait. All but `what` starts as zero. */
struct cli_wait {
    const char *what; /**< "job train"; borrowed. */
    char *told;       /**< The reason that was told last; NULL: none was. */
    int64_t since_ms; /**< Since when it waits, by weir_mono_ms; 0: it does not. */
};

/**
 * Tell why it waits, unless that was told last. NULL: it waits no longer, which is told too if it has waited:
 * "weir: job train has waited 12 s".
 */
void cli_wait_tell(struct cli_call *call, struct cli_wait *wait, const char *reason);

/** Of a record of a job, a service or a deployment: why it waits, borrowed from it; "": nobody says; NULL: it does
 *  not. */
const char *cli_job_waits(const json_t *job);
const char *cli_service_waits(const json_t *service);
const char *cli_deployment_waits(const json_t *deployment);

/** What is waited for, and how it is seen. */
struct cli_awaited {
    const char *what;                     /**< "job train" */
    const char *path;                     /**< GET gives the record. */
    const char *(*waits)(const json_t *); /**< As cli_job_waits. */
    bool (*is_there)(const json_t *record, const void *wanted);
    const void *wanted;
    int64_t timeout_ms; /**< 0: wait for ever. */
    /** So long it may not be there yet: an ION makes it a moment after it is applied. */
    int64_t comes_ms;
};

/**
 * Look until the record is as wanted, telling why it is not.
 * @param out  The last record seen, a new reference; also of TIMEOUT.
 * @return TIMEOUT with the last reason, and that it goes on; what the server answered otherwise.
 */
weir_status cli_wait_for(struct cli_call *call, const struct cli_awaited *awaited, json_t **out,
                         struct weir_error *err) WEIR_MUST_CHECK;

/** Say how a job that is over ended, unless it went well, and end this program so: with the status of the first task
 *  that failed. */
weir_status cli_job_end(struct cli_call *call, const char *id,
                        struct weir_error *err) WEIR_MUST_CHECK;

/** "90s", "5m". @return INVALID, which begins with --timeout. */
weir_status cli_wait_timeout(const char *text, int64_t *out_ms,
                             struct weir_error *err) WEIR_MUST_CHECK;

#endif
