#include "cluster/kubernetes/template.h"

#include "base/macros.h"

#include <string.h>

#define VOLUMES_MAX 32
#define READ_ONLY   ":ro"
#define ANY         "*"

/* ---- what the document lists ----------------------------------------------------------------- */

/* "registry.example" is not the beginning of "registry.example.other/x". */
static bool begins_with(const char *image, const char *prefix)
{
    size_t len = strlen(prefix);
    return strncmp(image, prefix, len) == 0 &&
           (strchr("/:", prefix[len - 1]) != NULL || strchr("/:@", image[len]) != NULL);
}

static bool allows_image(const json_t *list, const char *image)
{
    bool allows = list == NULL;
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one)
    {
        const char *prefix = json_string_value(one);
        allows = allows || (prefix != NULL && prefix[0] != '\0' && begins_with(image, prefix));
    }
    return allows;
}

/* An item of job_volumes, "claim:NAME", "claim:*" or "nfs:HOST:/DIR", each perhaps with ":ro" behind it. */
struct allowed {
    const char *text;
    size_t len; /* Without the ending. */
    bool is_claim, is_read_only;
};

static bool read_allowed(const char *item, struct allowed *out)
{
    static const char claim[] = "claim:", nfs[] = "nfs:";
    size_t len = item != NULL ? strlen(item) : 0, end = sizeof READ_ONLY - 1;
    *out = (struct allowed){0};
    out->is_read_only = len > end && strcmp(item + len - end, READ_ONLY) == 0;
    out->is_claim = len > 0 && strncmp(item, claim, sizeof claim - 1) == 0;
    size_t begin = out->is_claim ? sizeof claim - 1 : sizeof nfs - 1;
    len -= out->is_read_only ? end : 0;
    if (len <= begin || (!out->is_claim && strncmp(item, nfs, sizeof nfs - 1) != 0)) {
        return false;
    }
    out->text = item + begin;
    out->len = len - begin;
    const char *path = out->is_claim ? NULL : strstr(out->text, ":/");
    return out->is_claim || (path != NULL && path != out->text && path < out->text + out->len);
}

static bool is_in(const struct allowed *allowed, const struct weir_volume *volume)
{
    const char *source = allowed->is_claim ? volume->claim : volume->nfs;
    bool is_any = allowed->is_claim && allowed->len == 1 && allowed->text[0] == ANY[0];
    if (source == NULL || (volume->is_writable && allowed->is_read_only)) {
        return false;
    }
    bool begins = strncmp(source, allowed->text, allowed->len) == 0;
    bool is_folder = begins && !allowed->is_claim &&
                     (source[allowed->len] == '/' || allowed->text[allowed->len - 1] == '/');
    return is_any || is_folder || (begins && source[allowed->len] == '\0');
}

static bool lists(const json_t *list, const struct weir_volume *volume)
{
    bool is_listed = false;
    struct allowed allowed;
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one)
    {
        is_listed = is_listed ||
                    (read_allowed(json_string_value(one), &allowed) && is_in(&allowed, volume));
    }
    return is_listed;
}

const char *kubernetes_template_options_wrong(const struct kubernetes_options *options,
                                              struct weir_arena *arena)
{
    struct allowed allowed;
    size_t i;
    json_t *one;
    json_array_foreach(options->job_volumes, i, one)
    {
        const char *item = json_string_value(one);
        if (!read_allowed(item, &allowed)) {
            return weir_arena_printf(arena,
                                     "job_volumes[%zu]: \"%.60s\": \"claim:NAME\", \"claim:*\" or "
                                     "\"nfs:HOST:/DIR\" is expected, with \":ro\" behind it to "
                                     "have it read alone",
                                     i, item != NULL ? item : "");
        }
    }
    return NULL;
}

/* ---- what a job wants ------------------------------------------------------------------------ */

/* Claims are of a namespace: of one that a queue has for itself its jobs may have all. */
static bool has_own_namespace(const struct kubernetes_options *options, const char *queue)
{
    const char *space = kubernetes_options_payer(options, queue).namespace_name;
    return space != NULL &&
           (options->namespace_name == NULL || strcmp(space, options->namespace_name) != 0);
}

static weir_status check_volume(const struct kubernetes_options *options, const char *queue,
                                const struct weir_volume *volume, struct weir_error *err)
{
    if (volume->host != NULL) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "$.spec.volumes: \"host\": a folder of the nodes is no job's to have; "
            "option volumes of the cluster gives one to all");
    }
    bool may = lists(options->job_volumes, volume) ||
               (volume->claim != NULL && has_own_namespace(options, queue));
    return may ? WEIR_OK
               : weir_error_set(
                     err, WEIR_ERR_INVALID,
                     "$.spec.volumes: jobs may not %s %s %.200s: option job_volumes of the cluster "
                     "lists what they may%s",
                     volume->is_writable ? "write to" : "read",
                     volume->claim != NULL ? "the claim" : "the folder",
                     volume->claim != NULL ? volume->claim : volume->nfs,
                     volume->claim != NULL ? " have, and a queue with a namespace of its own has "
                                             "all claims there"
                                           : " have");
}

static weir_status check_path(const struct kubernetes_template *template,
                              const struct weir_volume *volume, struct weir_error *err)
{
    for (size_t i = 0; i < template->n_volumes; i++) {
        if (strcmp(template->volumes[i].path, volume->path) == 0) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "$.spec.volumes: the pods of this cluster have another volume at "
                                  "%.200s: name another path",
                                  volume->path);
        }
    }
    return WEIR_OK;
}

/* What the document lists was checked before (kubernetes_options_wrong). */
static size_t add_volumes(struct kubernetes_template *template, const json_t *list)
{
    size_t i, n_wrong = 0;
    json_t *one;
    json_array_foreach(list, i, one)
    {
        struct weir_volume volume;
        bool is_good =
            template->n_volumes < VOLUMES_MAX * 2 && weir_volume_read(one, &volume) == NULL;
        if (is_good) {
            template->volumes[template->n_volumes++] = volume;
        }
        n_wrong += !is_good;
    }
    return n_wrong;
}

static weir_status add_wanted(const struct kubernetes_options *options,
                              const struct weir_node_request *request, const json_t *wanted,
                              struct kubernetes_template *template, struct weir_error *err)
{
    struct kubernetes_template own = {.volumes = template->volumes + template->n_volumes};
    const json_t *image = json_object_get(wanted, "image");
    if (add_volumes(&own, json_object_get(wanted, "volumes")) > 0 || own.n_volumes > VOLUMES_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.spec.volumes: at most %d are expected",
                              VOLUMES_MAX);
    }
    for (size_t i = 0; i < own.n_volumes; i++) {
        WEIR_TRY(check_volume(options, request->queue, &own.volumes[i], err));
        WEIR_TRY(check_path(template, &own.volumes[i], err));
        template->n_volumes++;
    }
    if (image != NULL && !allows_image(options->job_images, json_string_value(image))) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec.image: \"%.200s\" is none of those that jobs may have here "
                              "(option job_images of the cluster)",
                              json_string_value(image));
    }
    template->wanted_image = json_string_value(image);
    template->image = image != NULL ? template->wanted_image : template->image;
    return WEIR_OK;
}

weir_status kubernetes_template_make(const struct kubernetes_options *options,
                                     const struct weir_node_request *request,
                                     struct weir_arena *arena, struct kubernetes_template *out,
                                     struct weir_error *err)
{
    *out = (struct kubernetes_template){
        .image = kubernetes_options_payer(options, request->queue).pod_image,
        .volumes = WEIR_ARENA_ARRAY(arena, 4 * VOLUMES_MAX, struct weir_volume)};
    (void)add_volumes(out, options->volumes);
    return request->pod != NULL ? add_wanted(options, request, request->pod, out, err) : WEIR_OK;
}
