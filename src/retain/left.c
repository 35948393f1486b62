/* Decisions that a replica has left behind: its job is over, and not every reader of its outbox has
 * passed the end. Nobody ships them any more; they are kept for as long as decisions are, and told. */
#include "retain/retain_private.h"

#include "base/log.h"
#include "base/uuid.h"
#include "store/event.h"
#include "store/stmt.h"

#define KEY "decisions_left"

/** A job that ended just now may still be shipping. */
#define QUIET_MS ((int64_t)600000)

static const char sql_is_told[] =
    "SELECT count(*) FROM alerts WHERE key = '" KEY "' AND state <> 'resolved'";

struct telling {
    const struct retain_look *look;
    int64_t n_left, n_going, is_told;
    const char *example; /**< A folder that is left. */
};

static weir_status raise(struct weir_txn *txn, const struct telling *telling,
                         struct weir_error *err)
{
    char id[WEIR_UUID_BYTES];
    weir_uuid_make(id);
    const struct weir_alert alert = {
        .id = id,
        .key = KEY,
        .kind = KEY,
        .severity = "warning",
        .subject = "server/replicas",
        .message = weir_arena_printf(
            telling->look->arena,
            "A replica whose job is over has left decisions that were never shipped, in %s of the "
            "state folder. They are kept as long as decisions are; take the folder away when you "
            "have what you need of it.",
            telling->example)};
    return weir_alert_raise(txn, &alert, telling->look->now_ms, NULL, err);
}

static weir_status tell_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct telling *telling = context;
    if (telling->n_going > 0) {
        const struct weir_event event = {
            .time_ms = telling->look->now_ms,
            .topic = "alerts",
            .kind = "decisions_lost",
            .subject = "server/replicas",
            .actor = "system",
            .message = weir_arena_printf(telling->look->arena,
                                         "Decisions that were never shipped are past the age or "
                                         "the size of decisions: %lld folders of replicas go.",
                                         (long long)telling->n_going)};
        WEIR_TRY(weir_event_append(txn, &event, NULL, err));
    }
    if (telling->n_left == 0) {
        return weir_alert_resolve(txn, KEY, telling->look->now_ms, err);
    }
    return telling->is_told == 0 ? raise(txn, telling, err) : WEIR_OK;
}

void retain_left_choose(const struct retain_look *look, struct retain_item *items, size_t n)
{
    int64_t bytes = 0,
            most = look->policy->limits[weir_retain_kind_from_text(RETAIN_DECISIONS)].max_bytes;
    for (size_t i = 0; i < n; i++) {
        bytes += items[i].is_left ? items[i].bytes : 0;
    }
    for (size_t i = 0; i < n && most >= 0 && bytes > most; i++) { /* oldest first */
        if (items[i].is_left) {
            items[i].goes = true;
            bytes -= items[i].bytes;
        }
    }
}

weir_status retain_left_tell(const struct retain_look *look, const struct retain_item *items,
                             size_t n, struct weir_error *err)
{
    struct telling telling = {.look = look};
    for (size_t i = 0; i < n; i++) {
        if (items[i].is_left && items[i].goes) {
            telling.n_going++;
            weir_log(WEIR_LOG_ERROR, "decisions_lost", WEIR_KV_STR("replica", items[i].name),
                     WEIR_KV_INT("bytes", items[i].bytes));
        } else if (items[i].is_left && look->now_ms - items[i].time_ms >= QUIET_MS) {
            telling.n_left++;
            telling.example = weir_arena_printf(look->arena, "replicas/%s", items[i].name);
        }
    }
    struct weir_store *store = look->retainer->config.store;
    WEIR_TRY(retain_query_int(look, sql_is_told, WEIR_NO_BINDS, &telling.is_told, err));
    bool differs = (telling.n_left > 0) != (telling.is_told > 0) || telling.n_going > 0;
    return differs ? weir_store_write(store, tell_in, &telling, err) : WEIR_OK;
}
