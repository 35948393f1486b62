#include "bench/spawn/spawn_place.h"

#include "comm/comm.h"

#include <stdlib.h>
#include <string.h>

/* Numbers longer than this are none of a host or a count. */
#define DIGITS_MAX 9

static bool is_host_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("._-@", c) != NULL);
}

static bool is_host(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!is_host_char(text[i])) {
            return false;
        }
    }
    return len > 0 && len < SPAWN_HOST_BYTES && text[0] != '-'; /* "-" would be an option of ssh */
}

static weir_status add(struct spawn_places *places, const char *host, size_t len, int n_slots,
                       struct weir_error *err)
{
    if (places->n == SPAWN_MAX_HOSTS) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "more than %d hosts", SPAWN_MAX_HOSTS);
    }
    if (!is_host(host, len)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "\"%.*s\" is no name of a host",
                              (int)WEIR_MIN(len, (size_t)60), host);
    }
    struct spawn_place *place = &places->list[places->n++];
    memcpy(place->host, host, len);
    place->host[len] = '\0';
    place->n_slots = n_slots;
    return WEIR_OK;
}

/** A decimal number at *at; -1 if there is none. Moves *at behind it. */
static int read_number(const char **at)
{
    int value = 0, n_digits = 0;
    for (; **at >= '0' && **at <= '9' && n_digits < DIGITS_MAX; (*at)++, n_digits++) {
        value = value * 10 + (**at - '0');
    }
    bool is_good = n_digits > 0 && (**at < '0' || **at > '9');
    return is_good ? value : -1;
}

weir_status spawn_places_parse(const char *text, struct spawn_places *out, struct weir_error *err)
{
    memset(out, 0, sizeof *out);
    for (const char *at = text;; at++) {
        size_t len = strcspn(at, ",:");
        const char *host = at;
        int n_slots = 0;
        at += len;
        if (*at == ':') {
            at++;
            n_slots = read_number(&at);
            if (n_slots < 1 || n_slots > WEIR_COMM_MAX_RANKS || (*at != ',' && *at != '\0')) {
                return weir_error_set(err, WEIR_ERR_INVALID,
                                      "hosts: after \"%.*s:\" expected how many ranks, 1 to %d",
                                      (int)WEIR_MIN(len, (size_t)60), host, WEIR_COMM_MAX_RANKS);
            }
        }
        weir_status status = add(out, host, len, n_slots, err);
        if (status != WEIR_OK) {
            return weir_error_prefix(err, "hosts: ");
        }
        if ((n_slots == 0) != (out->list[0].n_slots == 0)) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "hosts: give a number of ranks for every host, or for none");
        }
        if (*at == '\0') {
            return WEIR_OK;
        }
    }
}

/* ---- Slurm ---------------------------------------------------------------------------------- */

static weir_status bad_nodes(const char *nodes, struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "SLURM_JOB_NODELIST: cannot read \"%.100s\"; name the hosts yourself",
                          nodes);
}

/** "01-03" behind `prefix`: three hosts, as many digits as the first number has. */
static weir_status add_range(struct spawn_places *out, const char *prefix, size_t prefix_len,
                             const char **at, const char *nodes, struct weir_error *err)
{
    const char *first_text = *at;
    int first = read_number(at), width = (int)(*at - first_text), last = first;
    if (**at == '-') {
        (*at)++;
        last = read_number(at);
    }
    if (first < 0 || last < first || prefix_len >= SPAWN_HOST_BYTES - 16) {
        return bad_nodes(nodes, err);
    }
    for (int i = first; i <= last; i++) {
        char host[SPAWN_HOST_BYTES];
        int len = snprintf(host, sizeof host, "%.*s%0*d", (int)prefix_len, prefix, width, i);
        WEIR_TRY(add(out, host, (size_t)len, 0, err));
    }
    return WEIR_OK;
}

/** One item: "login" or "gpu[01-03,7]". */
static weir_status add_item(struct spawn_places *out, const char **at, const char *nodes,
                            struct weir_error *err)
{
    const char *prefix = *at;
    size_t len = strcspn(prefix, ",[");
    *at += len;
    if (**at != '[') {
        return add(out, prefix, len, 0, err);
    }
    do {
        (*at)++; /* "[" or "," */
        WEIR_TRY(add_range(out, prefix, len, at, nodes, err));
    } while (**at == ',');
    if (**at != ']') {
        return bad_nodes(nodes, err);
    }
    (*at)++;
    return **at == ',' || **at == '\0' ? WEIR_OK : bad_nodes(nodes, err);
}

/** "2(x3),1": two tasks on each of three nodes, one on the fourth. */
static weir_status set_slots(struct spawn_places *places, const char *tasks, struct weir_error *err)
{
    const char *at = tasks;
    int i = 0;
    while (i < places->n) {
        int n_slots = read_number(&at), n_times = 1;
        if (strncmp(at, "(x", 2) == 0) {
            at += 2;
            n_times = read_number(&at);
            at += *at == ')';
        }
        if (n_slots < 1 || n_times < 1 || (*at != ',' && *at != '\0')) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "SLURM_TASKS_PER_NODE: cannot read \"%.100s\"", tasks);
        }
        for (int k = 0; k < n_times && i < places->n; k++) {
            places->list[i++].n_slots = WEIR_MIN(n_slots, WEIR_COMM_MAX_RANKS);
        }
        at += *at == ',';
    }
    return WEIR_OK;
}

weir_status spawn_places_parse_slurm(const char *nodes, const char *tasks, struct spawn_places *out,
                                     struct weir_error *err)
{
    memset(out, 0, sizeof *out);
    const char *at = nodes;
    WEIR_TRY(add_item(out, &at, nodes, err));
    while (*at == ',') {
        at++;
        WEIR_TRY(add_item(out, &at, nodes, err));
    }
    return tasks == NULL ? WEIR_OK : set_slots(out, tasks, err);
}

/* ---- layout --------------------------------------------------------------------------------- */

weir_status spawn_places_lay_out(const struct spawn_places *places, int n_ranks, bool is_bound,
                                 int *out_place_of_rank, int *out_n_ranks, struct weir_error *err)
{
    int n_slots = 0;
    bool has_slots = places->list[0].n_slots > 0;
    for (int i = 0; i < places->n; i++) {
        n_slots += has_slots ? places->list[i].n_slots : 1;
    }
    int n = n_ranks > 0 ? n_ranks : n_slots;
    if (n < 1 || n > WEIR_COMM_MAX_RANKS) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%d ranks: expected 1 to %d", n,
                              WEIR_COMM_MAX_RANKS);
    }
    bool is_by_slots = has_slots && n <= n_slots;
    if (is_bound && has_slots && !is_by_slots) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "hosts: room for %d ranks, but %d are to be started", n_slots, n);
    }
    int rank = 0;
    for (int i = 0; i < places->n; i++) {
        int share =
            is_by_slots ? places->list[i].n_slots : n / places->n + (i < n % places->n ? 1 : 0);
        for (int k = 0; k < share && rank < n; k++) {
            out_place_of_rank[rank++] = i;
        }
    }
    *out_n_ranks = n;
    return WEIR_OK;
}
