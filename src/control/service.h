/**
 * Services as control makes, starts and stops them (job/service.h). Each call is part of its caller's
 * write transaction. What kinds there are is a table here: a kind makes the specification of a job of kind
 * "command" from what its owner said.
 */
#ifndef WEIR_CONTROL_SERVICE_H
#define WEIR_CONTROL_SERVICE_H

#include "control/control.h"
#include "job/service.h"

/** What somebody asks for. Text and JSON are borrowed. */
struct control_service {
    const char *name, *project, *kind;
    const json_t *spec; /**< As of a job of kind "command"; a notebook needs no argv. NULL: none. */
    const json_t *runs; /**< A tensorboard's: identifiers of runs; NULL: none. */
    int64_t port;       /**< 0: WEIR_PORT. */
    int64_t idle_after_ms; /**< 0: as the queue says. */
    bool keeps_path, is_shared;
};

/**
 * Make a service and start it; or start one of this name that does not run, with what is asked for now.
 * Its address and its folder stay.
 * @param has_domain  Services have hosts of their own: their path there is "/" (proxy/proxy.h).
 * @return INVALID with the place of what is wrong; CONFLICT if it runs, or is of another owner or kind;
 *         LIMIT for too many of the project.
 */
weir_status control_service_put(struct control *control, struct weir_txn *txn,
                                const struct control_service *wanted, bool has_domain,
                                struct weir_service_look *out,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** Start it as it was. @return CONFLICT if it runs. */
weir_status control_service_start(struct control *control, struct weir_txn *txn, const char *id,
                                  bool has_domain, struct weir_service_look *out,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** End its job; its folder stays. Nothing happens if it does not run. */
weir_status control_service_stop(struct control *control, struct weir_txn *txn, const char *id,
                                 const char *why, struct weir_service_look *out,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** Forget it, with its logins. Its folder is removed by the retention's sweep. @return CONFLICT if it
 *  runs. */
weir_status control_service_delete(struct control *control, struct weir_txn *txn, const char *id,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** Kinds of services. */
struct control_service_kind {
    const char *name, *doc;
    bool keeps_path; /**< Its program is told its path, whatever is asked for. */
    /** The specification of its job; a new reference in *out. *out_credential: what its program demands of
     *  each request, or NULL. */
    weir_status (*make)(struct control *control, const struct control_service *wanted, json_t **out,
                        char **out_credential, struct weir_error *err);
};

extern const struct control_service_kind control_service_kinds[];
extern const size_t control_n_service_kinds;

#endif
