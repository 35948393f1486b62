/**
 * Contact: is something outside connected, since when, and what went wrong last. A source and each
 * consumer has one, which people see in the report of the replica. Any thread.
 */
#ifndef WEIR_PREDICT_CONTACT_H
#define WEIR_PREDICT_CONTACT_H

#include "base/json.h"
#include "base/status.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct contact {
    pthread_mutex_t lock;
    /* Under lock. */
    bool is_lost;
    int64_t since_ms; /**< Wall clock: when that began. */
    char error[WEIR_ERROR_MESSAGE_BYTES];
};

/** Not lost, since now. */
void contact_init(struct contact *contact);
void contact_fini(struct contact *contact);

void contact_is_good(struct contact *contact);

/** @param why  Copied; bytes that are no UTF-8 are not shown. */
void contact_is_lost(struct contact *contact, const char *why);

/** {"connected", "since" (a time), "error" (the last; null: there was none)}, a new reference. */
json_t *contact_to_json(struct contact *contact);

#endif
