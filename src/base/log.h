/**
 * Log: one line per event, event name first, then key/value pairs.
 *
 *     weir_log(WEIR_LOG_INFO, "job_started", WEIR_KV_STR("job", id), WEIR_KV_INT("gpus", n));
 *
 * prints `2026-01-31T10:00:00.123Z info job_started job=… gpus=4` for people or one JSON object for
 * machines (weir_log_set_json). Libraries log at debug only; the place that decides, logs. Any
 * thread; a line is one write(2) to standard error, so that lines of several processes do not mix.
 */
#ifndef WEIR_BASE_LOG_H
#define WEIR_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum weir_log_level { WEIR_LOG_ERROR, WEIR_LOG_WARN, WEIR_LOG_INFO, WEIR_LOG_DEBUG };

enum weir_kv_type { WEIR_KV_TYPE_STR, WEIR_KV_TYPE_INT, WEIR_KV_TYPE_F64 };

struct weir_kv {
    const char *key;
    enum weir_kv_type type;
    const char *str;
    int64_t i64;
    double f64;
};

#define WEIR_KV_STR(k, v) ((struct weir_kv){.key = (k), .type = WEIR_KV_TYPE_STR, .str = (v)})
#define WEIR_KV_INT(k, v) ((struct weir_kv){.key = (k), .type = WEIR_KV_TYPE_INT, .i64 = (v)})
#define WEIR_KV_F64(k, v) ((struct weir_kv){.key = (k), .type = WEIR_KV_TYPE_F64, .f64 = (v)})

void weir_log_set_level(enum weir_log_level max_level);
void weir_log_set_json(bool is_json);

/** "error", "warn", "info", "debug" → level; false for any other text. */
bool weir_log_level_from_text(const char *text, enum weir_log_level *out);

void weir_log_kvs(enum weir_log_level level, const char *event, const struct weir_kv *kvs,
                  size_t n);

/** An event with no pairs: weir_log_event(WEIR_LOG_INFO, "server_stopped"). */
void weir_log_event(enum weir_log_level level, const char *event);

#define weir_log(level, event, ...)                                                                \
    weir_log_kvs((level), (event), (const struct weir_kv[]){__VA_ARGS__},                          \
                 sizeof((const struct weir_kv[]){__VA_ARGS__}) / sizeof(struct weir_kv))

#endif
