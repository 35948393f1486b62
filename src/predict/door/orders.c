#include "predict/door/orders.h"

#include "base/buf.h"
#include "base/complaint.h"
#include "base/file.h"
#include "base/grow.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES     1024
#define NEVER_HEARD    "the replica ended before the door had answered"
#define FILE_MAX_BYTES ((size_t)ORDERS_MAX * 2 * LINE_BYTES)

struct noted {
    struct door_order order;
    uint64_t number; /**< Counts up with each note. */
    bool is_told;    /**< The server knows that it was sent. */
};

struct door_orders {
    char *path;
    pthread_mutex_t lock;
    /* Under lock. */
    struct noted *noted; /**< By number. */
    size_t n, cap;
    uint64_t number, reported; /**< The last; the last of the last report. */
    size_t n_lines;            /**< In the file. */
    struct weir_complaint not_writable, full;
};

static bool is_open(const struct door_order *order)
{
    return strcmp(order->state, ORDER_SENT) == 0;
}

/* ---- in memory ------------------------------------------------------------------------------- */

static void drop(struct door_orders *orders, size_t i)
{
    orders->n--;
    memmove(&orders->noted[i], &orders->noted[i + 1], (orders->n - i) * sizeof *orders->noted);
}

/* @return Whether it says something new, which is the last one now. */
static bool keep(struct door_orders *orders, const struct door_order *order)
{
    size_t i = 0;
    while (i < orders->n && strcmp(orders->noted[i].order.id, order->id) != 0) {
        i++;
    }
    if (i < orders->n && !is_open(&orders->noted[i].order)) {
        return false;
    }
    struct door_order noted = *order;
    if (i < orders->n) {
        noted.sent_ms = orders->noted[i].order.sent_ms; /* the first time */
        if (order->is_held) {
            noted = orders->noted[i].order;
            (void)snprintf(noted.state, sizeof noted.state, "silent");
            (void)snprintf(noted.detail, sizeof noted.detail, "%s", NEVER_HEARD);
        }
        drop(orders, i);
    } else if (orders->n == ORDERS_MAX) {
        int64_t n_unsaid;
        drop(orders, 0);
        if (weir_complaint_is_due(&orders->full, &n_unsaid)) {
            weir_log(WEIR_LOG_WARN, "door_orders_lost", WEIR_KV_INT("others_before", n_unsaid));
        }
    }
    weir_xgrow(&orders->noted, sizeof *orders->noted, orders->n, &orders->cap);
    orders->noted[orders->n++] = (struct noted){noted, ++orders->number, false};
    return true;
}

/* ---- as text --------------------------------------------------------------------------------- */

static json_t *text_or_null(const char *text)
{
    return text[0] != '\0' ? weir_json_string(text, "?") : json_null();
}

static json_t *time_or_null(int64_t time_ms)
{
    return time_ms != 0 ? json_integer(time_ms) : json_null();
}

static json_t *to_json(const struct door_order *order)
{
    return json_pack("{s:s,s:s,s:s,s:s,s:o,s:o,s:o,s:o,s:o,s:o}", "id", order->id, "door",
                     order->door, "verb", order->verb, "state", order->state, "decision",
                     text_or_null(order->decision), "camera", text_or_null(order->camera), "detail",
                     text_or_null(order->detail), "sent_ms", time_or_null(order->sent_ms),
                     "valid_until_ms", time_or_null(order->valid_until_ms), "answered_ms",
                     time_or_null(order->answered_ms));
}

static void put(char *out, size_t size, const json_t *json, const char *member)
{
    const char *text = json_string_value(json_object_get(json, member));
    (void)snprintf(out, size, "%s", text != NULL ? text : "");
}

static bool from_json(const json_t *json, struct door_order *out)
{
    struct door_order order = {
        .sent_ms = json_integer_value(json_object_get(json, "sent_ms")),
        .valid_until_ms = json_integer_value(json_object_get(json, "valid_until_ms")),
        .answered_ms = json_integer_value(json_object_get(json, "answered_ms"))};
    put(order.id, sizeof order.id, json, "id");
    put(order.door, sizeof order.door, json, "door");
    put(order.verb, sizeof order.verb, json, "verb");
    put(order.state, sizeof order.state, json, "state");
    put(order.decision, sizeof order.decision, json, "decision");
    put(order.camera, sizeof order.camera, json, "camera");
    put(order.detail, sizeof order.detail, json, "detail");
    *out = order;
    return order.id[0] != '\0' && order.state[0] != '\0';
}

static void add_line(const struct door_order *order, struct weir_buf *out)
{
    json_t *json = to_json(order);
    char *text = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    if (text != NULL) {
        (void)weir_buf_printf(out, "%s\n", text);
    }
    free(text);
}

/* ---- the file -------------------------------------------------------------------------------- */

static void complain(struct door_orders *orders, const char *reason)
{
    if (weir_complaint_is_due(&orders->not_writable, NULL)) {
        weir_log(WEIR_LOG_ERROR, "door_orders_not_writable", WEIR_KV_STR("file", orders->path),
                 WEIR_KV_STR("reason", reason));
    }
}

static void rewrite(struct door_orders *orders)
{
    struct weir_buf text;
    struct weir_error err;
    size_t n_lines = 0;
    weir_buf_init(&text, FILE_MAX_BYTES);
    for (size_t i = 0; i < orders->n; i++) {
        add_line(&orders->noted[i].order, &text);
        n_lines++;
    }
    if (weir_file_replace(orders->path, text.data, text.len, 0600, &err) == WEIR_OK) {
        orders->n_lines = n_lines;
    } else {
        complain(orders, err.message);
    }
    weir_buf_fini(&text);
}

static void append(struct door_orders *orders, const struct door_order *order)
{
    struct weir_buf line;
    weir_buf_init(&line, 2 * LINE_BYTES);
    add_line(order, &line);
    int fd = open(orders->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, line.data, line.len) != (ssize_t)line.len) {
        complain(orders, strerror(errno));
    } else {
        orders->n_lines++;
    }
    if (fd >= 0) {
        close(fd);
    }
    weir_buf_fini(&line);
}

/* A line that was cut off by a kill is left out: its decision comes again. */
static void read_file(struct door_orders *orders)
{
    struct weir_arena arena;
    struct weir_error ignored;
    char *text = NULL, *rest = NULL;
    size_t len;
    weir_arena_init(&arena, 0);
    if (weir_file_read(orders->path, FILE_MAX_BYTES, &arena, &text, &len, &ignored) == WEIR_OK) {
        for (char *line = strtok_r(text, "\n", &rest); line != NULL;
             line = strtok_r(NULL, "\n", &rest)) {
            struct door_order order;
            json_t *json = json_loads(line, 0, NULL);
            if (from_json(json, &order)) {
                (void)keep(orders, &order);
            }
            json_decref(json);
        }
        rewrite(orders);
    }
    weir_arena_fini(&arena);
}

struct door_orders *door_orders_open(const char *path)
{
    struct door_orders *orders = weir_xalloc(sizeof *orders);
    *orders = (struct door_orders){.path = path != NULL ? weir_xstrdup(path) : NULL};
    pthread_mutex_init(&orders->lock, NULL);
    if (path != NULL) {
        read_file(orders);
    }
    return orders;
}

void door_orders_close(struct door_orders *orders)
{
    if (orders != NULL) {
        pthread_mutex_destroy(&orders->lock);
        free(orders->noted);
        free(orders->path);
        free(orders);
    }
}

/* ---- outside --------------------------------------------------------------------------------- */

void door_orders_note(struct door_orders *orders, const struct door_order *order)
{
    if (orders == NULL) {
        return;
    }
    pthread_mutex_lock(&orders->lock);
    bool is_new = keep(orders, order);
    if (is_new && orders->path != NULL) {
        append(orders, &orders->noted[orders->n - 1].order);
        if (orders->n_lines > 2 * (size_t)ORDERS_MAX - 1) {
            rewrite(orders);
        }
    }
    pthread_mutex_unlock(&orders->lock);
}

json_t *door_orders_report(struct door_orders *orders)
{
    json_t *list = NULL;
    if (orders == NULL) {
        return NULL;
    }
    pthread_mutex_lock(&orders->lock);
    for (size_t i = 0; i < orders->n && json_array_size(list) < ORDERS_PER_REPORT; i++) {
        const struct noted *noted = &orders->noted[i];
        if (!noted->is_told) {
            list = list != NULL ? list : json_array();
            json_array_append_new(list, to_json(&noted->order));
            orders->reported = noted->number;
        }
    }
    pthread_mutex_unlock(&orders->lock);
    return list;
}

void door_orders_taken(struct door_orders *orders)
{
    size_t n_left = 0, n_before;
    if (orders == NULL) {
        return;
    }
    pthread_mutex_lock(&orders->lock);
    n_before = orders->n;
    for (size_t i = 0; i < n_before; i++) {
        struct noted *noted = &orders->noted[i];
        noted->is_told = noted->number <= orders->reported;
        if (!noted->is_told || is_open(&noted->order)) {
            orders->noted[n_left++] = *noted;
        }
    }
    orders->n = n_left;
    if (n_left < n_before && orders->path != NULL) {
        rewrite(orders);
    }
    pthread_mutex_unlock(&orders->lock);
}
