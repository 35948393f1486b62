/* scontrol in a batch script: `scontrol show hostnames LIST`, by which scripts find their first node. */
#include "gang/slurm.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hosts {
    char **items;
    size_t n;
    struct weir_arena *arena;
};

static weir_status wrong(const char *list, struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "\"%.80s\" is no list of hosts: expected names with commas between them, "
                          "and n[1-3,7] for n1, n2, n3, n7",
                          list);
}

static weir_status add(struct hosts *hosts, char *name, struct weir_error *err)
{
    if (hosts->n == SLURM_HOSTS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "more than %d hosts", SLURM_HOSTS_MAX);
    }
    hosts->items[hosts->n++] = name;
    return WEIR_OK;
}

/* "07-09": numbers as wide as the first is written. */
static weir_status add_range(struct hosts *hosts, const char *prefix, size_t prefix_len,
                             const char **at, const char *behind, size_t behind_len,
                             const char *list, struct weir_error *err)
{
    char *end;
    const char *from_text = *at;
    if (!isdigit((unsigned char)*from_text)) {
        return wrong(list, err);
    }
    unsigned long from = strtoul(from_text, &end, 10), to = from;
    int width = (int)(end - from_text);
    if (*end == '-') {
        const char *to_text = end + 1;
        to = strtoul(to_text, &end, 10);
        width = end == to_text || to < from ? 99 : width;
    }
    if (width > 9 || to > 999999999) {
        return wrong(list, err);
    }
    for (unsigned long i = from; i <= to; i++) {
        WEIR_TRY(add(hosts,
                     weir_arena_printf(hosts->arena, "%.*s%0*lu%.*s", (int)prefix_len, prefix,
                                       width, i, (int)behind_len, behind),
                     err));
    }
    *at = end;
    return WEIR_OK;
}

/* One name of the list, of `len` bytes; at most one bracket. */
static weir_status add_name(struct hosts *hosts, const char *name, size_t len, const char *list,
                            struct weir_error *err)
{
    const char *open = memchr(name, '[', len), *close = memchr(name, ']', len);
    if (open == NULL && close == NULL) {
        return len > 0 ? add(hosts, weir_arena_memdup(hosts->arena, name, len), err)
                       : wrong(list, err);
    }
    size_t behind_len = close != NULL ? (size_t)(name + len - close - 1) : 0;
    if (open == NULL || close == NULL || close < open ||
        memchr(close + 1, '[', behind_len) != NULL) {
        return wrong(list, err);
    }
    for (const char *at = open + 1;; at++) {
        WEIR_TRY(
            add_range(hosts, name, (size_t)(open - name), &at, close + 1, behind_len, list, err));
        if (at == close) {
            return WEIR_OK;
        }
        if (*at != ',') {
            return wrong(list, err);
        }
    }
}

weir_status slurm_hosts_expand(const char *list, struct weir_arena *arena, char ***out,
                               size_t *out_n, struct weir_error *err)
{
    struct hosts hosts = {.items = WEIR_ARENA_ARRAY(arena, SLURM_HOSTS_MAX, char *),
                          .arena = arena};
    for (const char *at = list;; at++) {
        size_t len = 0;
        for (bool is_inside = false; at[len] != '\0' && (is_inside || at[len] != ','); len++) {
            is_inside = at[len] == '[' || (is_inside && at[len] != ']');
        }
        WEIR_TRY(add_name(&hosts, at, len, list, err));
        at += len;
        if (*at == '\0') {
            break;
        }
    }
    *out = hosts.items;
    *out_n = hosts.n;
    return WEIR_OK;
}

static weir_status print_hosts(const char *list, struct weir_arena *arena, struct weir_error *err)
{
    char **hosts;
    size_t n;
    WEIR_TRY(slurm_hosts_expand(list, arena, &hosts, &n, err));
    for (size_t i = 0; i < n; i++) {
        (void)printf("%s\n", hosts[i]);
    }
    return WEIR_OK;
}

int weir_scontrol_main(int argc, char **argv)
{
    struct weir_arena arena;
    struct weir_error err;
    const char *list = argc > 3 ? argv[3] : getenv("SLURM_JOB_NODELIST");
    bool is_hostnames = argc >= 3 && argc <= 4 && strcmp(argv[1], "show") == 0 &&
                        strlen(argv[2]) >= 5 && strncmp("hostnames", argv[2], strlen(argv[2])) == 0;
    if (!is_hostnames || list == NULL) {
        (void)fprintf(stderr,
                      "scontrol: in a job of Weir it knows `scontrol show hostnames [LIST]` "
                      "alone; elsewhere `weir describe job JOB` shows a job\n");
        return 1;
    }
    weir_arena_init(&arena, 0);
    weir_status status = print_hosts(list, &arena, &err);
    if (status != WEIR_OK) {
        (void)fprintf(stderr, "scontrol: %s\n", err.message);
    }
    weir_arena_fini(&arena);
    return status == WEIR_OK ? 0 : 1;
}
