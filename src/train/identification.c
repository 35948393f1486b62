#include "train/identification.h"

#include "base/clock.h"
#include "train/eigenfaces.h"
#include "train/embed.h"
#include "train/in_process.h"
#include "train/recipe.h"
#include "train/split.h"

#include <math.h>
#include <stdlib.h>

#define CACHE_BYTES ((size_t)256 << 20)

/** The photographs: those of a person lie one behind the other, in bytewise order of their names.
 */
struct album {
    const struct identification_config *config;
    struct weir_dataset *dataset;
    uint32_t n_people, n_photos_all;
    uint32_t *first, *n_photos; /**< By person. */
    size_t n_pixels;
    float *pixels; /**< n_photos_all x n_pixels, grey, 0 .. 1. */
    struct weir_arena arena;
};

/** One way to compare photographs: a vector for each. */
struct features {
    float *vectors; /**< n_photos_all x dim, of length 1 */
    size_t dim;
};

static weir_status nomem(struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the identification protocol");
}

/* ---- album ---------------------------------------------------------------------------------- */

static weir_status count_photos(struct album *album, struct weir_error *err)
{
    size_t n_people = weir_dataset_n_classes(album->dataset);
    size_t n_all = weir_dataset_n_samples(album->dataset);
    if (n_people < SPLIT_PEOPLE_MIN || n_all > UINT32_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: %zu people; the protocol needs at least %d, a folder each",
                              album->config->data, n_people, SPLIT_PEOPLE_MIN);
    }
    album->n_people = (uint32_t)n_people;
    album->n_photos_all = (uint32_t)n_all;
    album->first = WEIR_ARENA_ARRAY(&album->arena, n_people, uint32_t);
    album->n_photos = WEIR_ARENA_ARRAY(&album->arena, n_people, uint32_t);
    for (size_t i = n_all; i-- > 0;) {
        int32_t person = weir_dataset_label(album->dataset, i);
        album->first[person] = (uint32_t)i;
        album->n_photos[person]++;
    }
    for (size_t p = 0; p < n_people; p++) {
        if (album->n_photos[p] < SPLIT_PHOTOS_MIN) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "%s/%s: %u photographs; the protocol needs at least %d of a "
                                  "person: five to enrol, and one to ask",
                                  album->config->data, weir_dataset_class_name(album->dataset, p),
                                  album->n_photos[p], SPLIT_PHOTOS_MIN);
        }
    }
    return WEIR_OK;
}

static weir_status read_pixels(struct album *album, struct weir_error *err)
{
    struct weir_input plain = {.c = 1, .std = {1}};
    for (uint32_t i = 0; i < album->n_photos_all; i++) {
        struct weir_image image;
        WEIR_TRY(weir_dataset_read(album->dataset, i, &image, err));
        if (i == 0) {
            plain.h = image.height;
            plain.w = image.width;
            album->n_pixels = (size_t)image.height * (size_t)image.width;
            album->pixels = calloc(album->n_photos_all, album->n_pixels * sizeof *album->pixels);
        }
        weir_status status =
            album->pixels == NULL
                ? nomem(err)
                : weir_image_to_tensor(&image, &plain, album->pixels + i * album->n_pixels, err);
        weir_image_fini(&image);
        WEIR_TRY(status);
    }
    return WEIR_OK;
}

static weir_status album_open(struct album *album, const struct identification_config *config,
                              struct weir_error *err)
{
    const struct weir_dataset_options options = {.kind = WEIR_DATASET_FOLDER,
                                                 .cache_bytes = CACHE_BYTES};
    *album = (struct album){.config = config};
    weir_arena_init(&album->arena, 0);
    WEIR_TRY(weir_dataset_open(config->data, &options, &album->dataset, err));
    WEIR_TRY(count_photos(album, err));
    return read_pixels(album, err);
}

static void album_close(struct album *album)
{
    weir_dataset_close(album->dataset);
    free(album->pixels);
    weir_arena_fini(&album->arena);
}

/** Number of the k-th shuffled photograph of a person. */
static uint32_t photo(const struct album *album, const struct train_split *split, uint32_t person,
                      uint32_t k)
{
    return album->first[person] + split->photos[person][k];
}

/* ---- the network ---------------------------------------------------------------------------- */

/** The enrolled photographs of the trained people, as a dataset of their own. */
static weir_status open_training_set(const struct album *album, const struct train_split *split,
                                     struct weir_arena *arena, struct weir_dataset **out,
                                     struct weir_error *err)
{
    size_t n = (size_t)split->n_trained * SPLIT_ENROLLED;
    struct weir_dataset_item *items = WEIR_ARENA_ARRAY(arena, n, struct weir_dataset_item);
    const char **names = WEIR_ARENA_ARRAY(arena, split->n_trained, const char *);
    for (uint32_t i = 0; i < split->n_trained; i++) {
        uint32_t person = split->people[i];
        names[i] = weir_dataset_class_name(album->dataset, person);
        for (uint32_t k = 0; k < SPLIT_ENROLLED; k++) {
            char name[WEIR_SAMPLE_NAME_BYTES];
            (void)weir_dataset_sample_name(album->dataset, photo(album, split, person, k), name);
            items[i * SPLIT_ENROLLED + k] = (struct weir_dataset_item){
                .path = weir_arena_printf(arena, "%s/%s", album->config->data, name),
                .label = (int32_t)i};
        }
    }
    return weir_dataset_open_list(items, n, names, split->n_trained, CACHE_BYTES, out, err);
}

static weir_status configure(const struct album *album, uint64_t seed, struct weir_arena *arena,
                             struct weir_train_config *out, struct weir_error *err)
{
    const struct identification_config *config = album->config;
    weir_training_defaults(out, arena);
    WEIR_TRY(train_recipe_apply(config->model, arena, out, err));
    out->model.name = weir_arena_strdup(arena, config->model);
    out->data.path = weir_arena_strdup(arena, config->data);
    out->model.backend = weir_arena_strdup(arena, config->backend);
    out->loop.seed = (int64_t)seed;
    out->group.threads = config->n_threads;
    return weir_train_config_check(out, err);
}

static weir_status embed(const struct album *album, const struct train_task *task,
                         struct features *out, struct weir_error *err)
{
    struct train_in_process_result result;
    if (!task->is_embedding) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: a classifier; the identification protocol needs a model that "
                              "learns an embedding (face-embed)",
                              album->config->model);
    }
    out->dim = (size_t)weir_graph_output_shape(task->graph).c;
    out->vectors = calloc(album->n_photos_all, out->dim * sizeof *out->vectors);
    if (out->vectors == NULL) {
        return nomem(err);
    }
    WEIR_TRY(train_in_process(task, &result, err));
    weir_status status =
        train_embed_dataset(result.net, &result.input, album->dataset, out->dim, out->vectors, err);
    weir_net_destroy(result.net);
    return status;
}

/** Train on the split and embed all photographs. */
static weir_status network_features(const struct album *album, const struct train_split *split,
                                    uint64_t seed, struct features *out, struct weir_error *err)
{
    struct weir_train_config config;
    struct train_task task;
    struct weir_dataset *dataset = NULL;
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    WEIR_TRY(configure(album, seed, &arena, &config, err));
    WEIR_TRY(open_training_set(album, split, &arena, &dataset, err));
    weir_status status = train_task_open_on(&task, &config, dataset, err);
    if (status == WEIR_OK) {
        status = embed(album, &task, out, err);
    }
    train_task_close(&task);
    return status;
}

/* ---- the others ----------------------------------------------------------------------------- */

static void to_unit_length(float *vector, size_t dim)
{
    double squares = 0;
    for (size_t i = 0; i < dim; i++) {
        squares += (double)vector[i] * (double)vector[i];
    }
    for (size_t i = 0; squares > 0 && i < dim; i++) {
        vector[i] = (float)(vector[i] / sqrt(squares));
    }
}

static weir_status pixel_features(const struct album *album, const struct eigenfaces *faces,
                                  struct features *out, struct weir_error *err)
{
    out->dim = album->n_pixels;
    out->vectors = calloc(album->n_photos_all, out->dim * sizeof *out->vectors);
    if (out->vectors == NULL) {
        return nomem(err);
    }
    for (uint32_t i = 0; i < album->n_photos_all; i++) {
        const float *pixels = album->pixels + i * album->n_pixels;
        float *vector = out->vectors + i * out->dim;
        for (size_t k = 0; k < out->dim; k++) {
            vector[k] = pixels[k] - faces->mean[k];
        }
        to_unit_length(vector, out->dim);
    }
    return WEIR_OK;
}

static weir_status pca_features(const struct album *album, const struct eigenfaces *faces,
                                struct features *out, struct weir_error *err)
{
    out->dim = faces->n_components;
    out->vectors = calloc(album->n_photos_all, out->dim * sizeof *out->vectors);
    if (out->vectors == NULL) {
        return nomem(err);
    }
    for (uint32_t i = 0; i < album->n_photos_all; i++) {
        float *vector = out->vectors + i * out->dim;
        eigenfaces_project(faces, album->pixels + i * album->n_pixels, vector);
        to_unit_length(vector, out->dim);
    }
    return WEIR_OK;
}

static weir_status fit_eigenfaces(const struct album *album, const struct train_split *split,
                                  struct eigenfaces *out, struct weir_error *err)
{
    size_t n = (size_t)split->n_trained * SPLIT_ENROLLED;
    const float **pictures = calloc(n, sizeof *pictures);
    if (pictures == NULL) {
        return nomem(err);
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t person = split->people[i / SPLIT_ENROLLED];
        pictures[i] =
            album->pixels + photo(album, split, person, i % SPLIT_ENROLLED) * album->n_pixels;
    }
    weir_status status =
        eigenfaces_fit(pictures, n, album->n_pixels, IDENTIFICATION_PCA_COMPONENTS, out);
    free(pictures);
    return status == WEIR_OK
               ? WEIR_OK
               : weir_error_set(err, status, "eigenfaces: %s", weir_status_text(status));
}

/* ---- scores --------------------------------------------------------------------------------- */

/** People first .. end of the split, n_enrolled photographs of each. */
struct group {
    uint32_t first, end, n_enrolled;
};

static struct group group_of(const struct train_split *split, enum identification_group which)
{
    uint32_t n_trained = split->n_trained, n_people = split->n_people;
    return which == IDENTIFICATION_TRAINED ? (struct group){0, n_trained, SPLIT_ENROLLED}
           : which == IDENTIFICATION_UNSEEN_FIVE
               ? (struct group){n_trained, n_people, SPLIT_ENROLLED}
               : (struct group){n_trained, n_people, 1};
}

/** Scores of one probe for all people of a group. */
static void score_probe(const struct album *album, const struct train_split *split,
                        const struct group *group, const struct features *features,
                        const float *probe, float *out)
{
    const float *enrolled[SPLIT_ENROLLED];
    for (uint32_t q = group->first; q < group->end; q++) {
        for (uint32_t k = 0; k < group->n_enrolled; k++) {
            enrolled[k] =
                features->vectors + photo(album, split, split->people[q], k) * features->dim;
        }
        *out++ = recognition_score(probe, enrolled, group->n_enrolled, features->dim);
    }
}

static weir_status measure_group(const struct album *album, const struct train_split *split,
                                 const struct group *group, const struct features *features,
                                 struct recognition *out)
{
    size_t n_people = group->end - group->first, n_probes = 0;
    WEIR_AUTO(weir_auto_free)
    float *scores = calloc(album->n_photos_all, n_people * sizeof *scores);
    WEIR_AUTO(weir_auto_free) uint32_t *persons = calloc(album->n_photos_all, sizeof *persons);
    WEIR_TRY(scores == NULL || persons == NULL ? WEIR_ERR_NOMEM : WEIR_OK);
    for (uint32_t i = group->first; i < group->end; i++) {
        uint32_t person = split->people[i];
        for (uint32_t k = SPLIT_ENROLLED; k < album->n_photos[person]; k++) {
            const float *probe = features->vectors + photo(album, split, person, k) * features->dim;
            score_probe(album, split, group, features, probe, scores + n_probes * n_people);
            persons[n_probes++] = i - group->first;
        }
    }
    return recognition_measure(scores, persons, n_probes, n_people,
                               IDENTIFICATION_FALSE_ACCEPT_RATE, out);
}

static weir_status measure_method(const struct album *album, const struct train_split *split,
                                  const struct features *features,
                                  enum identification_method method,
                                  struct identification_round *round, struct weir_error *err)
{
    for (int g = 0; g < IDENTIFICATION_GROUPS; g++) {
        struct group group = group_of(split, (enum identification_group)g);
        if (measure_group(album, split, &group, features, &round->figures[g][method]) != WEIR_OK) {
            return nomem(err);
        }
    }
    return WEIR_OK;
}

/* ---- rounds --------------------------------------------------------------------------------- */

static void features_fini(struct features *features)
{
    free(features->vectors);
}

static weir_status measure_others(const struct album *album, const struct train_split *split,
                                  struct identification_round *round, struct weir_error *err)
{
    WEIR_AUTO(features_fini) struct features pixels = {0}, pca = {0};
    WEIR_AUTO(eigenfaces_fini) struct eigenfaces faces = {0};
    WEIR_TRY(fit_eigenfaces(album, split, &faces, err));
    WEIR_TRY(pixel_features(album, &faces, &pixels, err));
    WEIR_TRY(measure_method(album, split, &pixels, IDENTIFICATION_PIXEL_COSINE, round, err));
    WEIR_TRY(pca_features(album, &faces, &pca, err));
    return measure_method(album, split, &pca, IDENTIFICATION_PCA, round, err);
}

static weir_status measure_round(const struct album *album, uint64_t seed,
                                 struct identification_round *round, struct weir_error *err)
{
    struct train_split split;
    WEIR_AUTO(features_fini) struct features network = {0};
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    train_split_make(seed, album->n_photos, album->n_people, &arena, &split);
    WEIR_TRY(network_features(album, &split, seed, &network, err));
    WEIR_TRY(measure_method(album, &split, &network, IDENTIFICATION_WEIR, round, err));
    return measure_others(album, &split, round, err);
}

static void print_round(const struct identification_config *config, uint64_t seed, int64_t start_ms,
                        const struct identification_round *round)
{
    if (config->progress == NULL) {
        return;
    }
    (void)fprintf(config->progress, "seed %llu:", (unsigned long long)seed);
    for (int g = 0; g < IDENTIFICATION_GROUPS; g++) {
        const struct recognition *figures = &round->figures[g][IDENTIFICATION_WEIR];
        (void)fprintf(config->progress, "%s %.1f/%.1f", g == 0 ? "" : " ", 100 * figures->rank1,
                      100 * figures->tar);
    }
    (void)fprintf(config->progress, "  (rank-1/TAR %%), %.1f s\n",
                  (double)(weir_mono_ms() - start_ms) / 1000);
}

weir_status identification_run(const struct identification_config *config,
                               struct identification_result *out, struct weir_error *err)
{
    WEIR_AUTO(album_close) struct album album = {0};
    WEIR_AUTO(weir_auto_free)
    struct identification_round *rounds = calloc(config->n_seeds, sizeof *rounds);
    if (rounds == NULL) {
        return nomem(err);
    }
    WEIR_TRY(album_open(&album, config, err));
    for (size_t i = 0; i < config->n_seeds; i++) {
        int64_t start_ms = weir_mono_ms();
        WEIR_TRY(measure_round(&album, config->first_seed + i, &rounds[i], err));
        print_round(config, config->first_seed + i, start_ms, &rounds[i]);
    }
    *out = (struct identification_result){.n_people = album.n_people,
                                          .n_trained = album.n_people * 2 / 3};
    identification_summarise(rounds, config->n_seeds, out);
    return WEIR_OK;
}
