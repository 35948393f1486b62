/* A folder that changes fill: random changes against what they say, in memory. */
#include "blob/kept_folder.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define N_NAMES   6
#define N_CHANGES 200

static const char *const names[N_NAMES] = {"a", "b", "last.pt", "d/x", "d/e/y", "d/e/z"};

static char root[WEIR_DIR_TEMPORARY_BYTES], dir[WEIR_DIR_TEMPORARY_BYTES + 8];
static struct weir_arena arena;
static struct weir_error err;

static void set_up(void)
{
    ck_assert_int_eq(weir_dir_make_temporary("kept-test", root, &err), WEIR_OK);
    (void)snprintf(dir, sizeof dir, "%s/job", root);
    weir_arena_init(&arena, 0);
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
    ck_assert_int_eq(weir_dir_remove(root, NULL), WEIR_OK);
}

static void send_part(const char *name, const char *bytes)
{
    char file[WEIR_DIR_TEMPORARY_BYTES + 16];
    (void)snprintf(file, sizeof file, "%s/upload", root);
    ck_assert_int_eq(weir_file_write(file, bytes, strlen(bytes), 0600, &err), WEIR_OK);
    ck_assert_int_eq(weir_kept_part(dir, name, bytes[0] != '\0' ? file : NULL, &err), WEIR_OK);
}

static weir_status change(const struct weir_kept_put *puts, size_t n_puts,
                          const char *const *removed, size_t n_removed, size_t *out_n_missing)
{
    const struct weir_kept_change wanted = {puts, n_puts, removed, n_removed};
    const char **missing;
    return weir_kept_change(dir, &wanted, &arena, &missing, out_n_missing, &err);
}

/* What the file has, "-" if there is none. */
static const char *read_kept(const char *name)
{
    char *text = weir_arena_alloc(&arena, 64);
    int fd;
    if (weir_kept_open(dir, name, &fd, &err) != WEIR_OK) {
        return "-";
    }
    ssize_t n = read(fd, text, 63);
    ck_assert_int_ge(n, 0);
    text[n] = '\0';
    close(fd);
    return text;
}

START_TEST(random_changes_leave_what_they_say_or_nothing_of_it)
{
    struct weir_rng rng;
    uint64_t seed;
    char wanted[N_NAMES][32], version[WEIR_SHA256_TEXT_BYTES] = "";
    weir_random_bytes(&seed, sizeof seed);
    (void)printf("seed %llu\n", (unsigned long long)seed);
    weir_rng_init(&rng, seed, 0);
    for (int i = 0; i < N_NAMES; i++) {
        (void)snprintf(wanted[i], sizeof wanted[i], "-");
    }
    for (int k = 0; k < N_CHANGES; k++) {
        struct weir_kept_put puts[N_NAMES];
        const char *removed[N_NAMES];
        char parts[N_NAMES][32], next[N_NAMES][32];
        size_t n_puts = 0, n_removed = 0, n_missing, n_held_back = 0, n_wanted = 0;
        memcpy(next, wanted, sizeof next);
        for (int i = 0; i < N_NAMES; i++) {
            switch (weir_rng_below(&rng, 4)) {
            case 0:
                (void)snprintf(next[i], sizeof next[i], "%d.%d", k, i);
                next[i][weir_rng_below(&rng, 8) == 0 ? 0 : sizeof next[i] - 1] = '\0';
                (void)snprintf(parts[n_puts], sizeof parts[n_puts], "%d-%d", k, i);
                puts[n_puts] = (struct weir_kept_put){names[i], parts[n_puts]};
                if (weir_rng_below(&rng, 8) == 0) {
                    n_held_back++;
                } else {
                    send_part(parts[n_puts], next[i]);
                }
                n_puts++;
                break;
            case 1:
                removed[n_removed++] = names[i];
                (void)snprintf(next[i], sizeof next[i], "-");
                break;
            default:
                break;
            }
        }
        ck_assert_int_eq(change(puts, n_puts, removed, n_removed, &n_missing), WEIR_OK);
        ck_assert_uint_eq(n_missing, n_held_back);
        if (n_held_back == 0) {
            memcpy(wanted, next, sizeof wanted);
        }
        struct weir_kept kept;
        ck_assert_int_eq(weir_kept_list(dir, &arena, &kept, &err), WEIR_OK);
        for (int i = 0; i < N_NAMES; i++) {
            ck_assert_str_eq(read_kept(names[i]), wanted[i]);
            n_wanted += strcmp(wanted[i], "-") != 0;
        }
        ck_assert_uint_eq(kept.n, n_wanted);
        bool is_same = n_held_back > 0 || (n_puts == 0 && n_removed == 0);
        ck_assert(k == 0 || !is_same || strcmp(kept.version, version) == 0);
        ck_assert(n_held_back > 0 || n_puts == 0 || strcmp(kept.version, version) != 0);
        memcpy(version, kept.version, sizeof version);
    }
}

END_TEST

/* A task of the job may write there too. */
START_TEST(no_link_leads_out)
{
    char outside[WEIR_DIR_TEMPORARY_BYTES + 16], link[sizeof dir + 8], secret[sizeof outside + 8];
    size_t n_missing;
    struct weir_kept kept;
    (void)snprintf(outside, sizeof outside, "%s/outside", root);
    (void)snprintf(secret, sizeof secret, "%s/s", outside);
    (void)snprintf(link, sizeof link, "%s/d", dir);
    ck_assert_int_eq(weir_dir_make(outside, 0700, &err), WEIR_OK);
    ck_assert_int_eq(weir_dir_make(dir, 0700, &err), WEIR_OK);
    ck_assert_int_eq(weir_file_write(secret, "secret", 6, 0600, &err), WEIR_OK);
    ck_assert_int_eq(symlink(outside, link), 0);
    ck_assert_str_eq(read_kept("d/s"), "-");
    ck_assert_int_eq(weir_kept_list(dir, &arena, &kept, &err), WEIR_OK);
    ck_assert_uint_eq(kept.n, 0);
    send_part("p-1", "x");
    const struct weir_kept_put puts[] = {{"d/t", "p-1"}};
    ck_assert_int_ne(change(puts, 1, NULL, 0, &n_missing), WEIR_OK);
    const char *const removed[] = {"d/s"};
    ck_assert_int_ne(change(NULL, 0, removed, 1, &n_missing), WEIR_OK);
    ck_assert(weir_path_exists(secret));
    ck_assert_int_eq(weir_kept_part(dir, "../p", NULL, &err), WEIR_ERR_INVALID);
}

END_TEST

WEIR_TEST_MAIN_WITH("kept_folder", set_up, tear_down,
                    random_changes_leave_what_they_say_or_nothing_of_it, no_link_leads_out)
