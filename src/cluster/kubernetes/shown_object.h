/**
 * WeirJobs: what people of a cluster see of jobs with kubectl (weirjobs.weir.dev, manifest.yaml). What an object has that is
 * there, and what it should have. Pure. For the driver's own files.
 *
 * Its status is Weir's alone: it is a part of its own, to write which takes a right of its own. So an object is a job's only if its
 * status says so; labels and members of its spec may have been written by anybody who may make one.
 */
#ifndef WEIR_CLUSTER_KUBERNETES_SHOWN_OBJECT_H
#define WEIR_CLUSTER_KUBERNETES_SHOWN_OBJECT_H

#include "base/json.h"
#include "cluster/driver.h"

#define SHOWN_API           "weir.dev/v1"
#define SHOWN_GROUP_PATH    "/apis/" SHOWN_API
#define SHOWN_KIND          "WeirJob"
#define SHOWN_RESOURCE      "weirjobs"
#define SHOWN_JOB_LABEL     "weir.dev/job"
#define SHOWN_FINALIZER     "weir.dev/job"
#define SHOWN_NOT_SUPPORTED "NotSupported" /* the state of one that a person has made */
#define SHOWN_KEY_BYTES     (2 * 253 + 2)
#define SHOWN_REASON_BYTES  1024

/** What is kept of an object; one block of memory, freed with free(). Text is NULL where nothing is said. */
struct shown_object {
    const char *uid;
    const char *job;       /**< Identifier of the job that its status says it is of. */
    uint64_t spec, status; /**< Hashes of those members that Weir writes, and of its label. */
    uint64_t server;       /**< Hash of the server that it says it is of. */
    int64_t ended_ms;      /**< When that job ended, by its status; 0: nothing is said. */
    int32_t finalizer; /**< Place of Weir's finalizer among its finalizers; -1: it has it not. */
    bool is_leaving;   /**< It was deleted, and is there for its finalizers alone. */
    bool is_refused;   /**< Its status says that it is not supported. */
};

struct shown_object *shown_object_read(const json_t *object);

/** The hash of a server's address, as shown_object has it. */
uint64_t shown_server_hash(const char *server);

/** Where a job's object is: "NAMESPACE/NAME", of the job's name and the end of its identifier. In the arena. */
const char *shown_key(const char *space, const struct weir_shown_job *job,
                      struct weir_arena *arena);

/** What a job's object should have. New references; in the status all that is known. */
json_t *shown_spec(const struct weir_shown_job *job, const char *server);
json_t *shown_status(const struct weir_shown_job *job, struct weir_arena *arena);

/** The same as hashes: of one that is as it should be the object's are equal. */
uint64_t shown_spec_hash(const struct weir_shown_job *job, const char *server);
uint64_t shown_status_hash(const struct weir_shown_job *job);

/** The status of one that a person has made. A new reference. */
json_t *shown_refusal(void);

#endif
