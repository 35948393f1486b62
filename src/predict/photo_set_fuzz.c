/* Any JSON as manifests, {"people": M, "impostors": M}: refused, or sets whose people are in order,
 * each once, and no impostor is one of them. Four photos have an embedding in the file of them. */
#include "predict/photo_set.h"

#include "base/log.h"
#include "predict/test_model.h"

#include <stdlib.h>
#include <string.h>

#define DIM 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
    char dir[64], model[128], store[128];
    struct embedder_config config;
    struct embedder *embedder;
} fixture;

static void must(weir_status status, const struct weir_error *err)
{
    if (status != WEIR_OK) {
        (void)fprintf(stderr, "%s: %s\n", weir_status_name(status), err->message);
        abort();
    }
}

static void write_model(void)
{
    static const char text[] = "{\"input\":[1,2,2],\"layers\":["
                               "{\"name\":\"fc\",\"type\":\"linear\",\"k\":4},"
                               "{\"name\":\"unit\",\"type\":\"l2_normalise\"}],"
                               "\"loss\":{\"type\":\"margin\"}}";
    struct weir_error err = {0};
    must(test_model_save(fixture.model, text, 1, NULL, &err), &err);
}

/* 64 times "a", "b", "c"; the vector of "d…" is none of length 1. */
static void write_store(void)
{
    char digests[DIM][EMBEDDING_DIGEST_LEN + 1] = {{0}};
    const char *pointers[DIM];
    float vectors[DIM * DIM] = {0};
    struct weir_error err;
    for (size_t i = 0; i < DIM; i++) {
        memset(digests[i], "abcd"[i], EMBEDDING_DIGEST_LEN);
        pointers[i] = digests[i];
        vectors[i * DIM + i] = i == DIM - 1 ? 2 : 1;
    }
    must(embedding_store_save(fixture.store, DIM, pointers, vectors, DIM, &err), &err);
}

static void close_fixture(void)
{
    embedder_close(fixture.embedder);
    (void)!weir_dir_remove(fixture.dir, NULL);
}

static void open_fixture(void)
{
    struct weir_error err;
    weir_log_set_level(WEIR_LOG_ERROR);
    (void)snprintf(fixture.dir, sizeof fixture.dir, "/tmp/weir-photos-XXXXXX");
    if (mkdtemp(fixture.dir) == NULL) {
        abort();
    }
    (void)snprintf(fixture.model, sizeof fixture.model, "%s/model", fixture.dir);
    (void)snprintf(fixture.store, sizeof fixture.store, "%s/store", fixture.dir);
    write_model();
    write_store();
    fixture.config = (struct embedder_config){.model_path = fixture.model,
                                              .model = {.name = "fuzz", .id = "", .blob = ""},
                                              .store_path = fixture.store,
                                              .cache_dir = fixture.dir};
    must(embedder_open(&fixture.config, &fixture.embedder, &err), &err);
    (void)atexit(close_fixture);
}

static bool has_name(const struct photo_set *set, const char *name)
{
    for (size_t i = 0; i < set->n_persons; i++) {
        if (strcmp(set->persons[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static void check(const struct photo_set *set, const json_t *manifest)
{
    if (set->n + set->n_damaged > json_array_size(json_object_get(manifest, "files"))) {
        abort();
    }
    for (size_t i = 1; i < set->n_persons; i++) {
        if (strcmp(set->persons[i - 1], set->persons[i]) >= 0) {
            abort();
        }
    }
    for (size_t i = 0; i < set->n; i++) {
        const float *vector = set->vectors + i * DIM;
        if (set->owners[i] < 0 || (size_t)set->owners[i] >= set->n_persons ||
            vector[set->digests[i][0] - 'a'] != 1) {
            abort(); /* another photo's vector, or another's owner */
        }
    }
}

static void add_both(const json_t *root)
{
    struct photo_set people = {0}, impostors = {0};
    struct weir_error err = {0};
    const struct photo_source of_people = {.what = "gallery",
                                           .manifest = json_object_get(root, "people")};
    const struct photo_source of_impostors = {.what = "impostors",
                                              .manifest = json_object_get(root, "impostors")};
    if (embedder_add(fixture.embedder, &of_people, NULL, &people, &err) == WEIR_OK) {
        check(&people, of_people.manifest);
        if (embedder_add(fixture.embedder, &of_impostors, &people, &impostors, &err) == WEIR_OK) {
            check(&impostors, of_impostors.manifest);
        }
    }
    for (size_t i = 0; i < impostors.n_persons; i++) {
        if (has_name(&people, impostors.persons[i])) {
            abort();
        }
    }
    photo_set_fini(&people);
    photo_set_fini(&impostors);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *root;
    if (fixture.embedder == NULL) {
        open_fixture();
    }
    if (weir_json_parse((const char *)data, size, "fuzz", &root, NULL) == WEIR_OK) {
        add_both(root);
        json_decref(root);
    }
    return 0;
}
