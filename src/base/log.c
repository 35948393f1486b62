#include "base/log.h"

#include "base/buf.h"
#include "base/clock.h"

#include <jansson.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define LOG_LINE_MAX_BYTES 4096

static atomic_int max_level = WEIR_LOG_INFO;
static atomic_bool is_json_output;

static const char *const level_texts[] = {"error", "warn", "info", "debug"};

void weir_log_set_level(enum weir_log_level level)
{
    atomic_store(&max_level, (int)level);
}

void weir_log_set_json(bool is_json)
{
    atomic_store(&is_json_output, is_json);
}

bool weir_log_level_from_text(const char *text, enum weir_log_level *out)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(level_texts); i++) {
        if (strcmp(text, level_texts[i]) == 0) {
            *out = (enum weir_log_level)i;
            return true;
        }
    }
    return false;
}

/* Text with spaces, quotes or control characters is quoted, so that a line can be taken apart. */
static void append_quoted(struct weir_buf *line, const char *text)
{
    (void)weir_buf_puts(line, "\"");
    for (const char *p = text; *p != '\0'; p++) {
        unsigned char c = (unsigned char)*p;
        if (c == '"' || c == '\\') {
            (void)weir_buf_printf(line, "\\%c", c);
        } else if (c == '\n') {
            (void)weir_buf_puts(line, "\\n");
        } else if (c < 0x20 || c == 0x7f) {
            (void)weir_buf_printf(line, "\\u%04x", c);
        } else {
            (void)weir_buf_append(line, p, 1);
        }
    }
    (void)weir_buf_puts(line, "\"");
}

static bool is_plain(const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        if ((unsigned char)*p <= 0x20 || *p == '"' || *p == '\\' || *p == '=' || *p == 0x7f) {
            return false;
        }
    }
    return *text != '\0';
}

static void append_value(struct weir_buf *line, const struct weir_kv *kv, bool is_json)
{
    const char *text = kv->str != NULL ? kv->str : "";
    switch (kv->type) {
    case WEIR_KV_TYPE_INT:
        (void)weir_buf_printf(line, "%lld", (long long)kv->i64);
        break;
    case WEIR_KV_TYPE_F64:
        if (is_json && !isfinite(kv->f64)) {
            (void)weir_buf_puts(line, "null");
        } else {
            (void)weir_buf_printf(line, "%.6g", kv->f64);
        }
        break;
    case WEIR_KV_TYPE_STR:
        if (is_json || !is_plain(text)) {
            append_quoted(line, text);
        } else {
            (void)weir_buf_puts(line, text);
        }
        break;
    }
}

void weir_log_kvs(enum weir_log_level level, const char *event, const struct weir_kv *kvs, size_t n)
{
    if ((int)level > atomic_load(&max_level)) {
        return;
    }
    bool is_json = atomic_load(&is_json_output);
    char when[WEIR_TIME_TEXT_BYTES];
    weir_time_format(weir_time_ms(), when);

    struct weir_buf line;
    weir_buf_init(&line, LOG_LINE_MAX_BYTES);
    (void)weir_buf_printf(
        &line, is_json ? "{\"time\":\"%s\",\"level\":\"%s\",\"event\":\"%s\"" : "%s %s %s", when,
        level_texts[level], event);
    for (size_t i = 0; i < n; i++) {
        (void)weir_buf_printf(&line, is_json ? ",\"%s\":" : " %s=", kvs[i].key);
        append_value(&line, &kvs[i], is_json);
    }
    line.status = WEIR_OK; /* an overlong line is cut, but still ends */
    line.max_bytes += 2;
    (void)weir_buf_puts(&line, is_json ? "}\n" : "\n");
    ssize_t written = write(STDERR_FILENO, line.data, line.len);
    (void)written; /* nowhere to report a failing log */
    weir_buf_fini(&line);
}

void weir_log_event(enum weir_log_level level, const char *event)
{
    weir_log_kvs(level, event, NULL, 0);
}
