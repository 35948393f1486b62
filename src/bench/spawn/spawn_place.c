#include "bench/spawn/spawn_place.h"

#include "base/hosts.h"
#include "comm/comm.h"

#include <stdlib.h>
#include <string.h>

static weir_status add(struct spawn_places *places, const char *host, size_t len, int n_slots,
                       struct weir_error *err)
{
    if (places->n == SPAWN_MAX_HOSTS) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "more than %d hosts", SPAWN_MAX_HOSTS);
    }
    if (!weir_host_is_valid(host, len)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "\"%.*s\" is no name of a host",
                              (int)WEIR_MIN(len, (size_t)60), host);
    }
    struct spawn_place *place = &places->list[places->n++];
    memcpy(place->host, host, len);
    place->host[len] = '\0';
    place->n_slots = n_slots;
    return WEIR_OK;
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
            n_slots = weir_hosts_number(&at);
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

static weir_status add_host(void *context, const char *host, struct weir_error *err)
{
    return add(context, host, strlen(host), 0, err);
}

/** "2(x3),1": two tasks on each of three nodes, one on the fourth. */
static weir_status set_slots(struct spawn_places *places, const char *tasks, struct weir_error *err)
{
    const char *at = tasks;
    int i = 0;
    while (i < places->n) {
        int n_slots = weir_hosts_number(&at), n_times = 1;
        if (strncmp(at, "(x", 2) == 0) {
            at += 2;
            n_times = weir_hosts_number(&at);
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
    if (weir_hosts_read(nodes, add_host, out, err) != WEIR_OK) {
        return weir_error_prefix(err, "SLURM_JOB_NODELIST, in place of which hosts can be named: ");
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
