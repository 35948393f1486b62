/** Who plays: people drawn by the demo, or those of --faces. */
#include "cli/demo/demo.h"

#include "base/file.h"
#include "base/rng.h"
#include "cli/demo/faces.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PHOTO_MAX_BYTES ((size_t)8 << 20)
#define ENROLLED_PHOTOS 5

static const char *const first_names[] = {
    "ada",   "ben",  "cleo", "dora", "emil",  "fay",   "gus",  "hana", "ivo",
    "jane",  "karl", "lena", "milo", "nora",  "otto",  "pia",  "quin", "rosa",
    "sami",  "tess", "ugo",  "vera", "wim",   "xenia", "yuri", "zoe",  "alma",
    "bruno", "cora", "dan",  "elsa", "felix", "greta", "hugo", "ines", "jan",
};

/* One in six stays a stranger, one in eight joins later, the others are staff. */
static enum demo_part part_of(size_t i, size_t n)
{
    if (i % 6 == 5) {
        return DEMO_STRANGER;
    }
    return i % 8 == 6 || (n < 12 && i == n - 1) ? DEMO_JOINER : DEMO_STAFF;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* The photos of one folder, shuffled, so that the enrolled ones are no special ones. */
static weir_status load_person(struct demo *demo, const char *folder, struct demo_person *person,
                               struct weir_error *err)
{
    struct dirent **entries;
    struct weir_arena *arena = demo->call->arena;
    int n = scandir(folder, &entries, is_visible, alphasort);
    if (n < 0) {
        return weir_error_set_errno(err, errno, "cannot list %s", folder);
    }
    person->files = WEIR_ARENA_ARRAY(arena, DEMO_MAX_PHOTOS, char *);
    uint32_t order[DEMO_MAX_PHOTOS];
    for (int i = 0; i < n; i++) {
        if (i < DEMO_MAX_PHOTOS) {
            person->files[i] = weir_arena_printf(arena, "%s/%s", folder, entries[i]->d_name);
            order[i] = (uint32_t)i;
            person->n_photos = (uint32_t)i + 1;
        }
        free(entries[i]);
    }
    free(entries);
    struct weir_rng rng;
    weir_rng_init(&rng, (uint64_t)demo->options->seed, demo->n_people);
    weir_rng_shuffle_u32(&rng, order, person->n_photos);
    char **shuffled = WEIR_ARENA_ARRAY(arena, DEMO_MAX_PHOTOS, char *);
    for (uint32_t i = 0; i < person->n_photos; i++) {
        shuffled[i] = person->files[order[i]];
    }
    person->files = shuffled;
    return WEIR_OK;
}

static weir_status cast_from_folder(struct demo *demo, const char *root, struct weir_error *err)
{
    struct dirent **entries;
    int n = scandir(root, &entries, is_visible, alphasort);
    if (n < 0) {
        return weir_error_set_errno(err, errno, "--faces: cannot list %s", root);
    }
    weir_status status = WEIR_OK;
    for (int i = 0; i < n; i++) {
        char *folder = weir_arena_printf(demo->call->arena, "%s/%s", root, entries[i]->d_name);
        if (status == WEIR_OK && weir_path_is_dir(folder) &&
            demo->n_people < (size_t)demo->options->people) {
            struct demo_person *person = &demo->people[demo->n_people];
            person->name = weir_arena_strdup(demo->call->arena, entries[i]->d_name);
            status = load_person(demo, folder, person, err);
            demo->n_people += person->n_photos > ENROLLED_PHOTOS;
        }
        free(entries[i]);
    }
    free(entries);
    if (status == WEIR_OK && demo->n_people < 6) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "--faces %s: expected a folder per person, six or more people with more than "
            "%d photos each",
            root, ENROLLED_PHOTOS);
    }
    return status;
}

static void cast_drawn(struct demo *demo)
{
    demo->n_people = (size_t)demo->options->people;
    for (size_t i = 0; i < demo->n_people; i++) {
        size_t round = i / WEIR_ARRAY_LEN(first_names);
        const char *name = first_names[i % WEIR_ARRAY_LEN(first_names)];
        demo->people[i].name =
            round == 0 ? weir_arena_strdup(demo->call->arena, name)
                       : weir_arena_printf(demo->call->arena, "%s-%zu", name, round + 1);
        demo->people[i].n_photos = (uint32_t)demo->options->photos;
    }
}

weir_status demo_photo(const struct demo *demo, const struct demo_person *person, uint32_t i_photo,
                       uint8_t *out, size_t max, size_t *out_len, struct weir_error *err)
{
    if (person->files != NULL) {
        struct weir_arena arena;
        char *data;
        weir_arena_init(&arena, 2 * PHOTO_MAX_BYTES);
        weir_status status = weir_file_read(person->files[i_photo], WEIR_MIN(max, PHOTO_MAX_BYTES),
                                            &arena, &data, out_len, err);
        if (status == WEIR_OK) {
            memcpy(out, data, *out_len);
        }
        weir_arena_fini(&arena);
        return status;
    }
    uint8_t pixels[FACE_WIDTH * FACE_HEIGHT];
    face_draw((uint64_t)demo->options->seed, (uint32_t)(person - demo->people), i_photo, pixels);
    int header = snprintf((char *)out, max, "P5\n%d %d\n255\n", FACE_WIDTH, FACE_HEIGHT);
    if ((size_t)header + sizeof pixels > max) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "a photo does not fit");
    }
    memcpy(out + header, pixels, sizeof pixels);
    *out_len = (size_t)header + sizeof pixels;
    return WEIR_OK;
}

/* The enrolled photos of a person as files, as a user would have them. */
static weir_status write_photos(struct demo *demo, const struct demo_person *person,
                                struct weir_error *err)
{
    char *folder =
        weir_arena_printf(demo->call->arena, "%s/people/%s", demo->work_dir, person->name);
    uint8_t *photo = weir_arena_alloc(demo->call->arena, 1 << 20);
    WEIR_TRY(weir_dir_make(folder, 0755, err));
    for (uint32_t i = 0; i < ENROLLED_PHOTOS; i++) {
        size_t len;
        WEIR_TRY(demo_photo(demo, person, i, photo, 1 << 20, &len, err));
        char *path = weir_arena_printf(demo->call->arena, "%s/%u.pgm", folder, i + 1);
        WEIR_TRY(weir_file_write_atomic(path, photo, len, 0644, err));
    }
    return WEIR_OK;
}

weir_status demo_cast(struct demo *demo, struct weir_error *err)
{
    if (demo->options->faces != NULL) {
        WEIR_TRY(cast_from_folder(demo, demo->options->faces, err));
    } else {
        cast_drawn(demo);
    }
    demo->n_enrolled_photos = ENROLLED_PHOTOS;
    for (size_t i = 0; i < demo->n_people; i++) {
        demo->people[i].part = part_of(i, demo->n_people);
        if (demo->people[i].part != DEMO_STRANGER) {
            WEIR_TRY(write_photos(demo, &demo->people[i], err));
        }
    }
    return WEIR_OK;
}
