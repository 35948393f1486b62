/* Lists of hosts, ours and Slurm's: what is understood names hosts that are safe on a command line,
 * and every rank gets one. */
#include "bench/spawn/spawn_place.h"

#include "comm/comm.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct spawn_places places;

static void check(int n_ranks)
{
    int place_of_rank[WEIR_COMM_MAX_RANKS], n = 0;
    if (places.n < 1 || places.n > SPAWN_MAX_HOSTS) {
        abort();
    }
    for (int i = 0; i < places.n; i++) {
        const char *host = places.list[i].host;
        if (host[0] == '\0' || host[0] == '-' || strpbrk(host, " \t\n'\"`$;&|<>/\\") != NULL) {
            abort();
        }
    }
    if (spawn_places_lay_out(&places, n_ranks, false, place_of_rank, &n, NULL) == WEIR_OK) {
        for (int r = 0; r < n; r++) {
            if (place_of_rank[r] < 0 || place_of_rank[r] >= places.n) {
                abort();
            }
        }
    }
}

/** The text up to a newline is the list, what follows Slurm's tasks per node. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (text == NULL) {
        return 0;
    }
    memcpy(text, data, size);
    text[size] = '\0';
    char *tasks = strchr(text, '\n');
    if (tasks != NULL) {
        *tasks++ = '\0';
    }
    if (spawn_places_parse(text, &places, NULL) == WEIR_OK) {
        check((int)(size % (WEIR_COMM_MAX_RANKS + 2)));
    }
    if (spawn_places_parse_slurm(text, tasks, &places, NULL) == WEIR_OK) {
        check(tasks != NULL ? 0 : (int)(size % WEIR_COMM_MAX_RANKS));
    }
    free(text);
    return 0;
}
