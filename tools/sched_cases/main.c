/** sched-cases [-p PROFILE] FILE [CASE]: run scheduling scenarios and fair-share cases. */
#include "sched_cases/fairshare.h"
#include "sched_cases/world.h"

#include "base/buf.h"
#include "base/macros.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX_BYTES ((size_t)64 << 20)
#define DIFF_MAX_BYTES ((size_t)1 << 20)

/** Rounds that must change nothing, where the case asks for fewer. */
#define ROUNDS_AFTER_MIN 5
#define ROUNDS_MAX       1000

#define EXIT_NO_FILE 77 /**< What ctest counts as skipped. */

struct run {
    const char *profile;
    const char *only; /**< A case's id; NULL: all. */
    int n_passed, n_failed, n_skipped;
};

static int64_t rounds(const json_t *document, const char *key, int64_t least)
{
    int64_t n = json_integer_value(json_object_get(document, key));
    return WEIR_MIN(WEIR_MAX(n, least), ROUNDS_MAX);
}

/** Rounds until the result must hold, then as many more that keep it. */
static weir_status run_full(struct world *world, struct weir_buf *out, int32_t *n_wrong,
                            struct weir_error *err)
{
    int64_t until = rounds(world->document, "rounds_until_match", 1);
    int64_t after = rounds(world->document, "rounds_after_match", ROUNDS_AFTER_MIN);
    for (int64_t i = 0; i < until + after && *n_wrong == 0; i++) {
        world_mark_stale(world);
        WEIR_TRY(world_run(world, err));
        world_advance(world);
        if (i + 1 >= until) {
            *n_wrong = world_compare(world, out);
        }
        if (*n_wrong > 0) {
            weir_buf_printf(out, "    after round %" PRId64 "\n", i + 1);
        }
    }
    return WEIR_OK;
}

static weir_status run_scenario(const char *profile, const json_t *document, const json_t *defaults,
                                struct weir_buf *out, int32_t *n_wrong, struct weir_error *err)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    struct world world;
    const char *mode = json_string_value(json_object_get(document, "mode"));
    weir_status status = world_load(&world, profile, document, defaults, &arena, err);
    if (status == WEIR_OK && mode != NULL && strcmp(mode, "full-cycle") == 0) {
        status = run_full(&world, out, n_wrong, err);
    } else if (status == WEIR_OK) {
        status = world_run(&world, err);
        *n_wrong = status == WEIR_OK ? world_compare(&world, out) : 0;
    }
    weir_arena_fini(&arena);
    return status;
}

static void run_case(const json_t *document, const json_t *defaults, struct run *run)
{
    struct weir_error err = {0};
    struct weir_buf out;
    weir_buf_init(&out, DIFF_MAX_BYTES);
    const char *id = json_string_value(json_object_get(document, "id"));
    const char *name = json_string_value(json_object_get(document, "name"));
    weir_status status = WEIR_OK;
    int32_t n_wrong = 0;
    if (json_object_get(document, "phase") != NULL) {
        n_wrong = fairshare_run(document, &out);
    } else {
        status = run_scenario(run->profile, document, defaults, &out, &n_wrong, &err);
    }
    const char *prefix = id == NULL ? "" : id, *gap = id == NULL ? "" : ": ";
    if (status == WEIR_ERR_UNSUPPORTED) {
        printf("skipped %s%s%s: %s\n", prefix, gap, name == NULL ? "" : name, err.message);
        run->n_skipped++;
    } else if (status != WEIR_OK || n_wrong > 0) {
        printf("FAILED %s%s%s\n%s", prefix, gap, name == NULL ? "" : name, out.data);
        if (status != WEIR_OK) {
            printf("    %s\n", err.message);
        }
        run->n_failed++;
    } else {
        run->n_passed++;
    }
    weir_buf_fini(&out);
}

static weir_status run_file(const char *path, struct run *run, struct weir_error *err)
{
    json_t *document = NULL;
    WEIR_TRY(weir_json_load(path, FILE_MAX_BYTES, &document, err));
    const json_t *defaults = json_object_get(json_object_get(document, "header"), "defaults");
    const json_t *cases = json_object_get(document, "cases");
    size_t i;
    json_t *one;
    json_array_foreach((json_t *)cases, i, one)
    {
        const char *id = json_string_value(json_object_get(one, "id"));
        if (run->only == NULL || (id != NULL && strcmp(id, run->only) == 0)) {
            run_case(one, defaults, run);
        }
    }
    bool is_there = json_is_array(cases);
    json_decref(document);
    return is_there ? WEIR_OK : weir_error_set(err, WEIR_ERR_INVALID, "%s: has no cases", path);
}

static int usage(void)
{
    fprintf(stderr,
            "Usage: sched-cases [-p PROFILE] FILE [CASE]\n"
            "Runs the scheduling cases of FILE (or one, by its id) and prints each\n"
            "difference; the last line counts them. PROFILE: default, or kai if none is given.\n");
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct run run = {.profile = "kai"};
    for (int option; (option = getopt(argc, argv, "p:")) != -1;) {
        if (option != 'p') {
            return usage();
        }
        run.profile = optarg;
    }
    if (optind >= argc || optind + 2 < argc) {
        return usage();
    }
    if (access(argv[optind], R_OK) != 0) {
        fprintf(stderr, "sched-cases: %s cannot be read\n", argv[optind]);
        return EXIT_NO_FILE;
    }
    struct weir_error err = {0};
    run.only = optind + 1 < argc ? argv[optind + 1] : NULL;
    weir_status status = run_file(argv[optind], &run, &err);
    if (status != WEIR_OK) {
        fprintf(stderr, "sched-cases: %s\n", err.message);
        return weir_status_exit(status);
    }
    printf("%d passed, %d failed, %d skipped\n", run.n_passed, run.n_failed, run.n_skipped);
    return run.n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
