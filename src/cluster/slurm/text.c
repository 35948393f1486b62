#include "cluster/slurm/text.h"

#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX 1000000000000000
#define SPAN_MAX_S ((int64_t)100 * 366 * 24 * 3600)
#define DAY_S      ((int64_t)24 * 3600)

static bool split(char *line, size_t n, const char **out)
{
    for (size_t i = 0; i < n; i++) {
        char *end = i + 1 < n ? strchr(line, '|') : line + strlen(line);
        if (end == NULL) {
            return false;
        }
        out[i] = line;
        line = end + (i + 1 < n);
        if (i + 1 < n) {
            *end = '\0';
        }
    }
    return true;
}

bool slurm_next_fields(const char **at, size_t n, struct weir_arena *arena, const char **out)
{
    while (**at != '\0') {
        size_t len = strcspn(*at, "\n"), n_bars = 0;
        for (size_t i = 0; i < len; i++) {
            n_bars += (*at)[i] == '|';
        }
        const char *line = *at;
        *at += len + ((*at)[len] == '\n');
        if (n_bars + 1 >= n && split(weir_arena_memdup(arena, line, len), n, out)) {
            return true;
        }
    }
    return false;
}

int64_t slurm_number(const char *text)
{
    int64_t value = 0;
    for (; *text >= '0' && *text <= '9' && value < NUMBER_MAX; text++) {
        value = value * 10 + (*text - '0');
    }
    return value;
}

int64_t slurm_time_ms(const char *text)
{
    return text[strspn(text, "0123456789")] == '\0' ? slurm_number(text) * 1000 : 0;
}

int64_t slurm_span_s(const char *text)
{
    const char *dash = strchr(text, '-');
    int64_t days = dash != NULL ? slurm_number(text) : 0, s = 0;
    int n_parts = 1;
    const char *at = dash != NULL ? dash + 1 : text;
    if (*at < '0' || *at > '9' || days > SPAN_MAX_S / DAY_S) {
        return 0;
    }
    for (;; n_parts++) {
        int64_t part = slurm_number(at);
        if (part > SPAN_MAX_S || s > SPAN_MAX_S) {
            return 0;
        }
        s = s * 60 + part;
        at += strspn(at, "0123456789");
        if (*at != ':' || n_parts == 3) {
            break;
        }
        at++;
    }
    /* "10:00" is minutes and seconds; after days hours come first. */
    for (; dash != NULL && n_parts < 3; n_parts++) {
        s *= 60;
    }
    s += days * DAY_S;
    return s > SPAN_MAX_S ? 0 : s;
}

/* One item, "gpu:h200:4(S:0-1)", of `len` bytes. */
static void take_gres(const char *item, size_t len, struct weir_arena *arena,
                      struct slurm_gres *out)
{
    const char *parenthesis = memchr(item, '(', len);
    len = parenthesis != NULL ? (size_t)(parenthesis - item) : len;
    const char *first = memchr(item, ':', len), *last = memrchr(item, ':', len);
    if (first == NULL) {
        return;
    }
    char *count = weir_arena_memdup(arena, last + 1, (size_t)(item + len - last - 1));
    int64_t n = slurm_number(count);
    if (first - item == 5 && strncmp(item, "shard", 5) == 0) {
        out->n_shards += WEIR_MIN(n, INT64_MAX - out->n_shards);
        return;
    }
    if (first - item != 3 || strncmp(item, "gpu", 3) != 0) {
        return;
    }
    out->n_others += WEIR_MIN(WEIR_MIN(n, out->n_gpus), INT64_MAX - out->n_others);
    if (n > out->n_gpus) {
        out->n_gpus = n;
        out->has_type = last > first + 1;
        out->model =
            out->has_type ? weir_arena_memdup(arena, first + 1, (size_t)(last - first - 1)) : "gpu";
    }
}

struct slurm_gres slurm_gres_read(const char *text, struct weir_arena *arena)
{
    struct slurm_gres gres = {0};
    while (*text != '\0') {
        size_t len = 0;
        for (int depth = 0; text[len] != '\0' && (text[len] != ',' || depth > 0); len++) {
            depth += (text[len] == '(') - (text[len] == ')');
        }
        take_gres(text, len, arena, &gres);
        text += len + (text[len] == ',');
    }
    return gres;
}

int slurm_version_read(const char *text)
{
    const char *number = text + strcspn(text, "0123456789");
    const char *dot = strchr(number, '.');
    if (dot == NULL || dot - number != 2 || dot[1] < '0' || dot[1] > '9') {
        return 0;
    }
    return (int)(slurm_number(number) * 100 + slurm_number(dot + 1) % 100);
}
