/** Who plays: people drawn by the demo, or those of --faces. */
#include "demo/demo.h"

#include "base/file.h"
#include "base/rng.h"
#include "demo/faces.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PHOTO_MAX_BYTES ((size_t)8 << 20)
#define PHOTO_ROOM      ((size_t)1 << 20)

/* Passers-by: how many photos count of each, and which of --faces' folders they are. Drawn ones
 * have numbers that no other person has. */
#define PASSER_PHOTOS      3
#define PASSER_FILES       10
#define PASSER_EVERY       4
#define PASSER_FIRST_DRAWN 1000

static const char *const first_names[] = {
    "ada",   "ben",  "cleo", "dora", "emil",  "fay",   "gus",  "hana", "ivo",
    "jane",  "karl", "lena", "milo", "nora",  "otto",  "pia",  "quin", "rosa",
    "sami",  "tess", "ugo",  "vera", "wim",   "xenia", "yuri", "zoe",  "alma",
    "bruno", "cora", "dan",  "elsa", "felix", "greta", "hugo", "ines", "jan",
};

/* One in six stays an impostor, one in eight joins later, the others are staff. */
static enum demo_part part_of(size_t i, size_t n)
{
    if (i % 6 == 5) {
        return DEMO_UNKNOWN;
    }
    return i % 8 == 6 || (n < 12 && i == n - 1) ? DEMO_JOINER : DEMO_STAFF;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* The photos of one folder, shuffled, so that the enrolled ones are no special ones. */
static weir_status load_person(struct demo *demo, const char *folder, uint64_t number,
                               struct demo_person *person, struct weir_error *err)
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
    weir_rng_init(&rng, (uint64_t)demo->options->seed, number);
    weir_rng_shuffle_u32(&rng, order, person->n_photos);
    char **shuffled = WEIR_ARENA_ARRAY(arena, DEMO_MAX_PHOTOS, char *);
    for (uint32_t i = 0; i < person->n_photos; i++) {
        shuffled[i] = person->files[order[i]];
    }
    person->files = shuffled;
    return WEIR_OK;
}

/* Every few folders one is a passer-by, and all that are left when there are enough people. */
static struct demo_person *next_of_folder(struct demo *demo, int i_folder)
{
    bool has_passers = demo->options->passers > 0 && demo->n_enrolled_photos > 0;
    bool is_passer = has_passers && i_folder % PASSER_EVERY == PASSER_EVERY - 1;
    if (!is_passer && demo->n_people < (size_t)demo->options->people) {
        return &demo->people[demo->n_people];
    }
    bool has_room = has_passers && demo->n_passers < (size_t)demo->options->passers;
    return has_room ? &demo->passers[demo->n_passers] : NULL;
}

static weir_status take_folder(struct demo *demo, const char *root, const char *name, int i_folder,
                               struct weir_error *err)
{
    char *folder = weir_arena_printf(demo->call->arena, "%s/%s", root, name);
    struct demo_person *person = next_of_folder(demo, i_folder);
    if (person == NULL || !weir_path_is_dir(folder)) {
        return WEIR_OK;
    }
    *person = (struct demo_person){.name = weir_arena_strdup(demo->call->arena, name)};
    WEIR_TRY(load_person(demo, folder, (uint64_t)i_folder, person, err));
    bool is_passer = person >= demo->passers && person < demo->passers + DEMO_MAX_PASSERS;
    if (is_passer) {
        person->part = DEMO_PASSER;
        demo->n_passers += person->n_photos > 0;
    } else {
        demo->n_people += person->n_photos > demo->n_enrolled_photos;
    }
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
        if (status == WEIR_OK) {
            status = take_folder(demo, root, entries[i]->d_name, i, err);
        }
        free(entries[i]);
    }
    free(entries);
    const bool is_enrolled = demo->n_enrolled_photos > 0;
    if (status == WEIR_OK && demo->n_people < (is_enrolled ? 6 : 1)) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "--faces %s: expected a folder per person, %s with more than %zu photos each", root,
            is_enrolled ? "eight or more people" : "one or more", demo->n_enrolled_photos);
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
        demo->people[i].number = (uint32_t)i;
    }
    demo->n_passers = (size_t)demo->options->passers;
    for (size_t i = 0; i < demo->n_passers; i++) {
        demo->passers[i] = (struct demo_person){
            .name = weir_arena_printf(demo->call->arena, "passer-%03zu", i + 1),
            .part = DEMO_PASSER,
            .n_photos = PASSER_PHOTOS,
            .number = PASSER_FIRST_DRAWN + (uint32_t)i,
        };
    }
}

uint32_t demo_uploaded_photos(const struct demo *demo, const struct demo_person *person)
{
    uint32_t n = (uint32_t)demo->n_enrolled_photos;
    if (person->part == DEMO_PASSER) {
        n = person->files != NULL ? PASSER_FILES : PASSER_PHOTOS;
    }
    return WEIR_MIN(n, person->n_photos);
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
    face_draw((uint64_t)demo->options->seed, person->number, i_photo, pixels);
    int header = snprintf((char *)out, max, "P5\n%d %d\n255\n", FACE_WIDTH, FACE_HEIGHT);
    if ((size_t)header + sizeof pixels > max) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "a photo does not fit");
    }
    memcpy(out + header, pixels, sizeof pixels);
    *out_len = (size_t)header + sizeof pixels;
    return WEIR_OK;
}

/* The photos of a person that will be uploaded, as files, as a user would have them. They are drawn
 * again each time, so they need not outlive a loss of power. */
static weir_status write_photos(struct demo *demo, const struct demo_person *person, uint8_t *photo,
                                struct weir_error *err)
{
    char *folder =
        weir_arena_printf(demo->call->arena, "%s/people/%s", demo->work_dir, person->name);
    WEIR_TRY(weir_dir_make(folder, 0755, err));
    for (uint32_t i = 0; i < demo_uploaded_photos(demo, person); i++) {
        size_t len;
        WEIR_TRY(demo_photo(demo, person, i, photo, PHOTO_ROOM, &len, err));
        char *path = weir_arena_printf(demo->call->arena, "%s/%u.pgm", folder, i + 1);
        WEIR_TRY(weir_file_write(path, photo, len, 0644, err));
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
    for (size_t i = 0; i < demo->n_people; i++) {
        demo->people[i].part = part_of(i, demo->n_people);
    }
    return WEIR_OK;
}

weir_status demo_cast_write(struct demo *demo, struct weir_error *err)
{
    uint8_t *photo = weir_arena_alloc(demo->call->arena, PHOTO_ROOM);
    for (size_t i = 0; i < demo->n_people; i++) {
        if (demo->people[i].part != DEMO_UNKNOWN) {
            WEIR_TRY(write_photos(demo, &demo->people[i], photo, err));
        }
    }
    return WEIR_OK;
}

weir_status demo_cast_passers(struct demo *demo, struct weir_error *err)
{
    uint8_t *photo = weir_arena_alloc(demo->call->arena, PHOTO_ROOM);
    for (size_t i = 0; i < demo->n_passers; i++) {
        WEIR_TRY(write_photos(demo, &demo->passers[i], photo, err));
    }
    return WEIR_OK;
}
