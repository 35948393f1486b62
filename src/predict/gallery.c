#include "predict/gallery.h"

#include <stdlib.h>

/* One broken photo is left out; impostors without a single one would leave the door to a rule that
 * nobody asked for. */
static weir_status check_impostors(const struct photo_set *impostors,
                                   const struct photo_source *source, struct weir_error *err)
{
    if (impostors->n > 0) {
        return WEIR_OK;
    }
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "impostors, version %lld: no photo can be used (%zu damaged, %zu people "
                          "enrolled too): put photos of people who are not enrolled into the "
                          "dataset and freeze it, or take gallery.impostors out of the ION",
                          (long long)source->version, impostors->n_damaged, impostors->n_known);
}

/* The impostors, or none. */
static weir_status add_impostors(struct embedder *embedder, const struct gallery_request *request,
                                 const struct photo_set *people, struct photo_set *out,
                                 struct weir_error *err)
{
    if (request->impostors.manifest == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(embedder_add(embedder, &request->impostors, people, out, err));
    return check_impostors(out, &request->impostors, err);
}

/* Takes vectors, owners and names from the set. */
static struct gallery *take(const struct gallery_request *request, struct photo_set *people,
                            const struct photo_set *impostors, size_t dim)
{
    struct gallery *gallery = weir_xalloc(sizeof *gallery);
    const char *impostors_blob =
        request->impostors.manifest != NULL ? request->impostors.blob : NULL;
    *gallery = (struct gallery){
        .version = request->people.version,
        .impostors_version = impostors_blob != NULL ? request->impostors.version : 0,
        .blob = weir_xstrdup(request->people.blob),
        .impostors_blob = impostors_blob != NULL ? weir_xstrdup(impostors_blob) : NULL,
        .persons = people->persons,
        .n_persons = people->n_persons,
        .templates = photo_set_templates(people, dim),
        .rates = request->rates,
        .n_damaged = people->n_damaged + impostors->n_damaged,
        .n_embedded = people->n_embedded + impostors->n_embedded,
        .n_whole = people->n_whole + impostors->n_whole,
        .n_known_impostors = impostors->n_known,
    };
    atomic_init(&gallery->n_refs, 1);
    people->persons = NULL;
    people->n_persons = 0;
    people->vectors = NULL;
    people->owners = NULL;
    return gallery;
}

static weir_status build(struct embedder *embedder, const struct gallery_request *request,
                         struct photo_set *people, struct photo_set *impostors,
                         struct gallery **out, struct weir_error *err)
{
    struct calibration calibration;
    size_t dim = embedder_dim(embedder);
    WEIR_TRY(embedder_add(embedder, &request->people, NULL, people, err));
    WEIR_TRY(add_impostors(embedder, request, people, impostors, err));
    WEIR_TRY(embedder_save(embedder, people, impostors, err));
    const struct templates known = photo_set_templates(people, dim);
    const struct templates unknown = photo_set_templates(impostors, dim);
    WEIR_TRY(calibrate(&known, &unknown, &request->rates, &calibration, err));
    *out = take(request, people, impostors, dim);
    (*out)->calibration = calibration;
    return WEIR_OK;
}

weir_status gallery_build(const struct gallery_request *request, struct gallery **out,
                          struct weir_error *err)
{
    struct embedder *embedder;
    struct photo_set people = {0}, impostors = {0};
    WEIR_TRY(embedder_open(&request->embedder, &embedder, err));
    weir_status status = build(embedder, request, &people, &impostors, out, err);
    photo_set_fini(&people);
    photo_set_fini(&impostors);
    embedder_close(embedder);
    return status;
}

struct thresholds gallery_thresholds(const struct gallery *gallery)
{
    return (struct thresholds){.known = gallery->calibration.threshold,
                               .barred = gallery->calibration.deny_threshold};
}

struct gallery *gallery_ref(struct gallery *gallery)
{
    atomic_fetch_add(&gallery->n_refs, 1);
    return gallery;
}

void gallery_unref(struct gallery *gallery)
{
    if (gallery == NULL || atomic_fetch_sub(&gallery->n_refs, 1) > 1) {
        return;
    }
    for (size_t i = 0; i < gallery->n_persons; i++) {
        free(gallery->persons[i]);
    }
    free(gallery->persons);
    free((void *)(uintptr_t)gallery->templates.vectors);
    free((void *)(uintptr_t)gallery->templates.persons);
    free(gallery->impostors_blob);
    free(gallery->blob);
    free(gallery);
}
