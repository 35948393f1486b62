/**
 * Alert kinds: every kind of alert there is, in one table: how bad it is, what it is about, when it
 * is raised and when it ends. docs/reference/health.md shows the same table (tests/lint/docs.py).
 */
#ifndef WEIR_STORE_ALERT_KIND_H
#define WEIR_STORE_ALERT_KIND_H

#include <stdbool.h>
#include <stddef.h>

/** What an alert means for the ION or the server that it is about. */
enum weir_alert_effect {
    WEIR_ALERT_NO_EFFECT, /**< Somebody's work failed; the platform works. */
    WEIR_ALERT_DEGRADES,  /**< It works, but not as it should. */
    WEIR_ALERT_BREAKS,    /**< If critical it is down; as a warning it is degraded. */
};

struct weir_alert_kind {
    const char *kind;
    const char *severity; /**< "warning" or "critical"; NULL: whoever raises it says which. */
    enum weir_alert_effect effect;
    const char *noun;     /**< Of its subject, NOUN/NAME. */
    bool is_watched;      /**< Raised and resolved by the server's watch (watch/watch.h). */
    const char *raised;   /**< When, in words. */
    const char *resolved; /**< When, in words. */
};

/** All kinds. Static. */
const struct weir_alert_kind *weir_alert_kinds(size_t *out_n);

/** NULL if there is none. */
const struct weir_alert_kind *weir_alert_kind_find(const char *kind);

#endif
