#include "blob/pack.h"

#include "base/file.h"
#include "base/test_main.h"
#include "base/uuid.h"

#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define N_ITEMS 400

static char dir[] = "/tmp/weir-pack-XXXXXX";
static struct weir_packs *packs;
static struct weir_arena arena;
static char ids[N_ITEMS][WEIR_UUID_BYTES];
static struct weir_pack_place places[N_ITEMS];

static void open_packs(int64_t pack_bytes)
{
    ck_assert_int_eq(weir_packs_open(dir, pack_bytes, &packs, NULL), WEIR_OK);
}

static void set_up(void)
{
    ck_assert_ptr_nonnull(mkdtemp(dir));
    weir_arena_init(&arena, 0);
    open_packs(4000);
    for (int i = 0; i < N_ITEMS; i++) {
        weir_uuid_make(ids[i]);
    }
}

static void tear_down(void)
{
    weir_packs_close(packs);
    weir_arena_fini(&arena);
    ck_assert_int_eq(weir_dir_remove(dir, NULL), WEIR_OK);
    memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
}

/* What item i holds: its number, that often. */
static size_t content_of(int i, char out[1024])
{
    size_t len = (size_t)(i * 37 % 900);
    memset(out, i & 0xff, len);
    return len;
}

static void append(int i)
{
    char bytes[1024];
    size_t len = content_of(i, bytes);
    ck_assert_int_eq(weir_packs_append(packs, ids[i], bytes, len, &places[i], NULL), WEIR_OK);
}

/* Is item i there? If so it is what was put. */
static bool has(int i)
{
    char bytes[1024], *data;
    size_t len, expected = content_of(i, bytes);
    weir_status status = weir_packs_read(packs, ids[i], &places[i], &arena, &data, &len, NULL);
    if (status != WEIR_OK) {
        ck_assert_int_eq(status, WEIR_ERR_NOT_FOUND);
        return false;
    }
    ck_assert_uint_eq(len, expected);
    ck_assert_int_eq(memcmp(data, bytes, len), 0);
    return true;
}

static int count_files(void)
{
    int n = 0;
    DIR *stream = opendir(dir);
    for (struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
        n += strstr(entry->d_name, ".pack") != NULL;
    }
    (void)closedir(stream);
    return n;
}

static const char *name_of(int64_t number)
{
    static char name[64];
    (void)snprintf(name, sizeof name, "%016" PRId64 ".pack", number);
    return name;
}

START_TEST(things_are_found_where_they_were_put_also_after_a_restart)
{
    for (int i = 0; i < 100; i++) {
        append(i);
    }
    ck_assert_int_gt(count_files(), 5);
    ck_assert_int_lt(count_files(), 30);
    weir_packs_close(packs);
    open_packs(4000);
    for (int i = 100; i < 200; i++) {
        append(i);
    }
    for (int i = 0; i < 200; i++) {
        ck_assert(has(i));
    }
    ck_assert_int_gt(places[100].pack,
                     places[99].pack); /* never behind what an earlier one wrote */
}

END_TEST

START_TEST(a_removed_pack_takes_its_things_and_no_others)
{
    for (int i = 0; i < 100; i++) {
        append(i);
    }
    int64_t gone = places[0].pack, last = places[99].pack;
    ck_assert_int_eq(weir_packs_remove(packs, name_of(gone), NULL), WEIR_OK);
    ck_assert_int_eq(weir_packs_remove(packs, name_of(gone), NULL), WEIR_OK);
    for (int i = 0; i < 100; i++) {
        ck_assert_int_eq(has(i), places[i].pack != gone);
    }
    ck_assert_int_eq(weir_packs_remove(packs, name_of(last), NULL), WEIR_OK); /* the current one */
    append(100);
    ck_assert_int_gt(places[100].pack, last);
    ck_assert(has(100));
    ck_assert_int_eq(weir_packs_remove(packs, "../x", NULL), WEIR_ERR_INVALID);
    ck_assert_int_eq(weir_packs_remove(packs, "1.pack", NULL), WEIR_ERR_INVALID);
}

END_TEST

START_TEST(a_place_gives_nobody_what_is_another_s)
{
    append(1);
    append(2);
    const struct weir_pack_place two = places[2];

    const struct {
        const char *id;
        struct weir_pack_place place;
    } cases[] = {
        {ids[1], two},
        {ids[2], {two.pack, two.offset + 1, two.bytes}},
        {ids[2], {two.pack, two.offset, two.bytes + 1}},
        {ids[2], {0}},
        {ids[2], {two.pack, -1, two.bytes}},
        {ids[2], {two.pack, two.offset, INT64_MAX}},
        {ids[2], {two.pack, 1 << 20, two.bytes}},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        char *data;
        size_t len;
        ck_assert_int_eq(
            weir_packs_read(packs, cases[i].id, &cases[i].place, &arena, &data, &len, NULL),
            WEIR_ERR_NOT_FOUND);
    }
}

END_TEST

START_TEST(an_erased_thing_is_zeros_and_one_that_cannot_be_looked_at_is_not_called_erased)
{
    char path[256];
    static char bytes[1 << 16];
    append(1);
    append(2);
    ck_assert_int_eq(weir_packs_erase(packs, ids[1], &places[1], NULL), WEIR_OK);
    ck_assert(!has(1));
    ck_assert(has(2));
    ck_assert_int_eq(weir_packs_erase(packs, ids[1], &places[1], NULL), WEIR_OK);
    (void)snprintf(path, sizeof path, "%s/%016lld.pack", dir, (long long)places[1].pack);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    size_t n = fread(bytes, 1, sizeof bytes, file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq((int64_t)n, places[2].offset + 44 + places[2].bytes);
    for (int64_t i = places[1].offset; i < places[2].offset; i++) {
        ck_assert_int_eq(bytes[i], 0);
    }
    struct weir_pack_place nowhere = places[2];
    nowhere.offset = INT64_MAX; /* no file system reads there */
    ck_assert_int_ne(weir_packs_erase(packs, ids[2], &nowhere, NULL), WEIR_OK);
    nowhere.offset = 1 << 30; /* behind the end: gone */
    ck_assert_int_eq(weir_packs_erase(packs, ids[2], &nowhere, NULL), WEIR_OK);
    ck_assert(has(2));
}

END_TEST

START_TEST(what_cannot_be_put_is_refused)
{
    struct weir_pack_place place;
    static char large[WEIR_PACK_ITEM_MAX_BYTES + 1];
    ck_assert_int_eq(weir_packs_append(packs, ids[0], large, sizeof large, &place, NULL),
                     WEIR_ERR_LIMIT);
    ck_assert_int_eq(weir_packs_append(packs, "me", "x", 1, &place, NULL), WEIR_ERR_INVALID);
    ck_assert_int_eq(count_files(), 0);
}

END_TEST

/* A limit on the size of files stands in for a disk that is full. */
START_TEST(a_full_disk_leaves_nothing_half_and_goes_on_when_there_is_room)
{
    struct rlimit before, tight;
    char bytes[1024] = {0};
    weir_packs_close(packs);
    open_packs(1 << 20);
    append(1);
    append(2);
    (void)signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    tight = (struct rlimit){(rlim_t)(places[2].offset + 500), before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &tight), 0);
    struct weir_pack_place place = {-1, -1, -1};
    weir_status status = weir_packs_append(packs, ids[3], bytes, 900, &place, NULL);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_int_ne(status, WEIR_OK);
    ck_assert_int_eq(place.pack, -1);
    append(4);
    ck_assert(has(1));
    ck_assert(has(2));
    ck_assert(has(4));
}

END_TEST

static void *append_many(void *context)
{
    for (int i = *(int *)context; i < N_ITEMS; i += 4) {
        append(i);
    }
    return NULL;
}

START_TEST(four_threads_do_not_write_into_each_other)
{
    pthread_t threads[4];
    int first[4] = {0, 1, 2, 3};
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, append_many, &first[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < N_ITEMS; i++) {
        ck_assert(has(i));
    }
}

END_TEST

WEIR_TEST_MAIN_WITH("pack", set_up, tear_down,
                    things_are_found_where_they_were_put_also_after_a_restart,
                    a_removed_pack_takes_its_things_and_no_others,
                    a_place_gives_nobody_what_is_another_s, what_cannot_be_put_is_refused,
                    an_erased_thing_is_zeros_and_one_that_cannot_be_looked_at_is_not_called_erased,
                    a_full_disk_leaves_nothing_half_and_goes_on_when_there_is_room,
                    four_threads_do_not_write_into_each_other)
