#include "base/path.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <stdio.h>
#include <string.h>

#define PARTS_MAX 6

/* A random path, and the parts of it that say something. */
struct made {
    char text[64], parts[PARTS_MAX][4];
    size_t n;
    bool has_parent;
};

static struct made make(struct weir_rng *rng)
{
    static const char *const words[] = {"a", "b", "ab", ".", "", "..", ".a", "..a"};
    struct made made = {.text = "/"};
    size_t n = weir_rng_below(rng, PARTS_MAX + 1);
    for (size_t i = 0; i < n; i++) {
        const char *word = words[weir_rng_below(rng, weir_rng_below(rng, 8) == 0 ? 8 : 5)];
        (void)snprintf(made.text + strlen(made.text), sizeof made.text - strlen(made.text), "%s%s",
                       word, i + 1 < n || weir_rng_below(rng, 4) == 0 ? "/" : "");
        made.has_parent = made.has_parent || strcmp(word, "..") == 0;
        if (strcmp(word, ".") != 0 && word[0] != '\0') {
            (void)snprintf(made.parts[made.n++], sizeof made.parts[0], "%s", word);
        }
    }
    return made;
}

START_TEST(a_path_is_below_a_folder_if_its_parts_begin_with_the_folders)
{
    const uint64_t seed = 20261128;
    struct weir_rng rng;
    size_t n_below = 0;
    weir_rng_init(&rng, seed, 0);
    for (int i = 0; i < WEIR_TEST_TIMES(100000, 20000); i++) {
        struct made path = make(&rng), dir = make(&rng);
        ck_assert_msg(weir_path_has_parent(path.text) == path.has_parent, "seed %llu: %s",
                      (unsigned long long)seed, path.text);
        if (path.has_parent || dir.has_parent) {
            continue;
        }
        bool is_below = dir.n <= path.n;
        for (size_t k = 0; k < dir.n && is_below; k++) {
            is_below = strcmp(dir.parts[k], path.parts[k]) == 0;
        }
        const char *rest = weir_path_below(path.text, dir.text);
        ck_assert_msg((rest != NULL) == is_below, "seed %llu: %s below %s",
                      (unsigned long long)seed, path.text, dir.text);
        if (rest != NULL) {
            size_t len = path.n > dir.n ? strlen(path.parts[dir.n]) : 0;
            ck_assert_msg(strncmp(rest, path.n > dir.n ? path.parts[dir.n] : "", len) == 0 &&
                              (rest[len] == '/' || rest[len] == '\0'),
                          "seed %llu: %s below %s: %s", (unsigned long long)seed, path.text,
                          dir.text, rest);
            n_below += dir.n > 0;
        }
    }
    ck_assert_uint_gt(n_below, 100);
    ck_assert_ptr_null(weir_path_below("a/b", "/a"));
    ck_assert_ptr_nonnull(weir_path_below("a/b", "a"));
}

END_TEST

WEIR_TEST_MAIN("paths", a_path_is_below_a_folder_if_its_parts_begin_with_the_folders)
