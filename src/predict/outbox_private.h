/** The outbox's inside, shared by its writer (outbox.c) and its readers (outbox_reader.c). */
#ifndef WEIR_PREDICT_OUTBOX_PRIVATE_H
#define WEIR_PREDICT_OUTBOX_PRIVATE_H

#include "base/complaint.h"
#include "base/deadline.h"
#include "predict/outbox.h"
#include "predict/outbox_index.h"
#include "predict/outbox_log.h"

#include <pthread.h>
#include <time.h>

struct outbox {
    struct outbox_config config;
    char *dir;
    int lock_fd;
    struct outbox_log *log;
    pthread_t writer;
    bool has_writer;
    /* Writer's own. */
    struct weir_buf group;
    struct weir_complaint not_writable;
    /* Under lock. */
    pthread_mutex_t lock;
    pthread_cond_t changed; /**< Of anything below. */
    struct outbox_item *queue;
    size_t n_queued;
    size_t picture_bytes; /**< Of the queued pictures. */
    bool is_closing;
    uint64_t n_put, n_durable;
    struct outbox_index index;
    uint64_t end; /**< Of what readers may see: in the log and in the index. */
    struct outbox_reader *readers;
};

struct outbox_reader {
    struct outbox *outbox;
    struct outbox_reader *next_reader;
    char *path;         /**< Of the file that keeps the place. */
    uint64_t position;  /**< Next to be read. */
    uint64_t delivered; /**< Behind the last batch given. */
    uint64_t saved;     /**< In the file; under lock. */
    int64_t note;       /**< Ditto. */
    int64_t saved_ms;
    bool is_cancelled; /**< Under lock. */
    int64_t oldest_ms; /**< Under lock: time of the first decision of the batch it has; 0: none. */
    char name[32];
};

/** Parse a record's text and add what is known only since it was written. NULL if it is none. */
json_t *outbox_record_at(struct outbox *outbox, const char *text, size_t len);

#endif
