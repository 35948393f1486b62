/** What the parts of weir_mlops share. */
#ifndef WEIR_MLOPS_PRIVATE_H
#define WEIR_MLOPS_PRIVATE_H

#include "client/client.h"
#include "mlops/weir_mlops.h"

#include "base/deadline.h"
#include "base/macros.h"

#include <pthread.h>
#include <stdio.h>

#define MLOPS_BATCH_MAX 100

enum { MLOPS_WRONG = 1, MLOPS_FULL = 2, MLOPS_NO_MEMORY = 3 };

/** One thing to tell: POSTed to `path`, alone or as one of the list `list`. */
struct mlops_record {
    char *path; /**< Owned, as is `item`. */
    json_t *item;
    const char *list; /**< A literal; NULL: the item is the whole body. */
};

struct weir_mlops {
    struct weir_client *client; /**< Of the sending thread; NULL: there is no server. */
    struct weir_client *asking; /**< Of the callers, one at a time. */
    struct weir_arena arena;
    const char *ion, *pipeline, *run, *file;
    pthread_t thread;
    pthread_mutex_t mutex, is_asking;
    pthread_cond_t has_changed;
    /* Under the mutex. */
    struct mlops_record *records; /**< WEIR_MLOPS_QUEUE_MAX, the first n are there. */
    size_t n, n_lost;
    bool is_stopping;
    int64_t stop_ms; /**< Monotonic: when a stopping thread gives up. */
    int64_t told_ms; /**< Of the last alert. */
    struct weir_error error;
};

/** Queue a record; takes path and item over, whatever comes of it. */
int mlops_tell(struct weir_mlops *mlops, char *path, const char *list, json_t *item);

/** Remember an error's sentence. */
void mlops_remember(struct weir_mlops *mlops, const struct weir_error *error);

/** The thread that sends. */
void *mlops_send(void *mlops);

/** Append records to the file as JSON lines {path, list, item}. @return how many are there. */
size_t mlops_write(struct weir_mlops *mlops, const struct mlops_record *records, size_t n);

/** The value of a statistic of kind "distribution"; NULL if no value is finite. A new reference. */
json_t *mlops_distribution(const double *values, size_t n);

void mlops_record_free(struct mlops_record *record);

#endif
