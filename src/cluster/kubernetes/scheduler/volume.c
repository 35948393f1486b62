#include "cluster/kubernetes/scheduler/volume.h"

#include "base/amount.h"
#include "base/macros.h"
#include "kube/client.h"

#include <string.h>

#define NO_PROVISIONER "kubernetes.io/no-provisioner"
#define SELECTED_NODE  "volume.kubernetes.io/selected-node"
#define BIND_COMPLETED "pv.kubernetes.io/bind-completed"
#define CLASS_OF_OLD   "volume.beta.kubernetes.io/storage-class"

/* ---- reading ---------------------------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *path, struct weir_arena *arena)
{
    return weir_arena_strdup(arena, weir_kube_text_or(object, path, NULL));
}

static const char *note_of(const json_t *object, const char *key, struct weir_arena *arena)
{
    const json_t *notes = weir_kube_at(object, "metadata.annotations");
    return weir_arena_strdup(arena, json_string_value(json_object_get(notes, key)));
}

static uint32_t read_modes(const json_t *modes)
{
    static const struct {
        const char *name;
        enum volume_mode mode;
    } all[] = {{"ReadWriteOnce", VOLUME_RWO},
               {"ReadOnlyMany", VOLUME_ROX},
               {"ReadWriteMany", VOLUME_RWX},
               {"ReadWriteOncePod", VOLUME_RWOP}};

    uint32_t found = 0;
    size_t i;
    json_t *one;
    json_array_foreach(modes, i, one)
    {
        const char *text = json_string_value(one);
        for (size_t k = 0; text != NULL && k < WEIR_ARRAY_LEN(all); k++) {
            found |= strcmp(text, all[k].name) == 0 ? (uint32_t)all[k].mode : 0;
        }
    }
    return found;
}

/* @param amounts  The path of its amounts. */
static struct volume_kind read_kind(const json_t *object, const char *amounts,
                                    struct weir_arena *arena)
{
    const json_t *spec = json_object_get(object, "spec");
    const char *of_old = note_of(object, CLASS_OF_OLD, arena);
    const char *bytes =
        json_string_value(json_object_get(weir_kube_at(object, amounts), "storage"));
    int64_t milli = 0;
    bool is_amount = bytes != NULL && weir_amount_parse(bytes, &milli);
    return (struct volume_kind){
        .class_name = of_old != NULL ? of_old
                                     : weir_arena_strdup(
                                           arena, weir_kube_text_or(spec, "storageClassName", "")),
        .bytes = is_amount ? milli / 1000 : 0,
        .modes = read_modes(json_object_get(spec, "accessModes")),
        .is_block = weir_kube_is(spec, "volumeMode", "Block")};
}

static const char *controller_of(const json_t *object, struct weir_arena *arena)
{
    size_t i;
    json_t *one;
    json_array_foreach(weir_kube_at(object, "metadata.ownerReferences"), i, one)
    {
        if (json_is_true(json_object_get(one, "controller"))) {
            return text_of(one, "uid", arena);
        }
    }
    return NULL;
}

struct volume_claim *volume_claim_read(const json_t *object)
{
    const char *name = weir_kube_text(object, "metadata.name");
    if (name == NULL) {
        return NULL;
    }
    struct volume_claim *claim = weir_xalloc(sizeof *claim);
    struct weir_arena *arena = &claim->held.arena;
    *claim = (struct volume_claim){.held = {.n_holders = 1}};
    weir_arena_init(arena, 0);
    claim->name = weir_arena_strdup(arena, name);
    claim->space =
        weir_arena_strdup(arena, weir_kube_text_or(object, "metadata.namespace", "default"));
    claim->key = weir_arena_printf(arena, "%s/%s", claim->space, claim->name);
    claim->uid = text_of(object, "metadata.uid", arena);
    claim->version = text_of(object, "metadata.resourceVersion", arena);
    claim->volume = text_of(object, "spec.volumeName", arena);
    claim->selected_node = note_of(object, SELECTED_NODE, arena);
    claim->owner_uid = controller_of(object, arena);
    claim->kind = read_kind(object, "spec.resources.requests", arena);
    const json_t *selector = weir_kube_at(object, "spec.selector");
    claim->has_selector = json_is_object(selector);
    claim->selector = select_read(selector, arena);
    claim->is_bound = claim->volume != NULL && note_of(object, BIND_COMPLETED, arena) != NULL;
    claim->is_lost = weir_kube_is(object, "status.phase", "Lost");
    claim->is_leaving = weir_kube_text(object, "metadata.deletionTimestamp") != NULL;
    return claim;
}

static struct select_all *read_terms(const json_t *terms, size_t *out_n, struct weir_arena *arena)
{
    struct select_all *rows =
        WEIR_ARENA_ARRAY(arena, json_array_size(terms) + 1, struct select_all);
    size_t i;
    json_t *one;
    json_array_foreach(terms, i, one)
    {
        rows[(*out_n)++] = select_read_node_term(one, arena);
    }
    return rows;
}

struct volume *volume_read(const json_t *object)
{
    const char *name = weir_kube_text(object, "metadata.name");
    if (name == NULL) {
        return NULL;
    }
    struct volume *volume = weir_xalloc(sizeof *volume);
    struct weir_arena *arena = &volume->held.arena;
    *volume = (struct volume){.held = {.n_holders = 1}};
    weir_arena_init(arena, 0);
    volume->name = weir_arena_strdup(arena, name);
    volume->version = text_of(object, "metadata.resourceVersion", arena);
    const json_t *claim = weir_kube_at(object, "spec.claimRef"),
                 *required = weir_kube_at(object, "spec.nodeAffinity.required");
    if (json_is_object(claim)) {
        volume->claim = weir_arena_printf(arena, "%s/%s", weir_kube_text_or(claim, "namespace", ""),
                                          weir_kube_text_or(claim, "name", ""));
        volume->claim_uid = text_of(claim, "uid", arena);
    }
    volume->kind = read_kind(object, "spec.capacity", arena);
    volume->labels = select_labels_read(weir_kube_at(object, "metadata.labels"), arena);
    volume->has_terms = json_is_object(required);
    volume->terms =
        read_terms(json_object_get(required, "nodeSelectorTerms"), &volume->n_terms, arena);
    volume->is_free = weir_kube_is(object, "status.phase", "Available") && claim == NULL &&
                      weir_kube_text(object, "metadata.deletionTimestamp") == NULL;
    return volume;
}

/* {"matchLabelExpressions": [{"key", "values"}]}: of each label one of the values. */
static struct select_all read_topology(const json_t *term, struct weir_arena *arena)
{
    const json_t *expressions = json_object_get(term, "matchLabelExpressions");
    struct select_all all = {.rows = WEIR_ARENA_ARRAY(arena, json_array_size(expressions) + 1,
                                                      struct select_requirement)};
    size_t i, k;
    json_t *one, *value;
    json_array_foreach(expressions, i, one)
    {
        const json_t *values = json_object_get(one, "values");
        struct select_requirement *row = &all.rows[all.n++];
        row->key = weir_arena_strdup(arena, weir_kube_text_or(one, "key", ""));
        row->is = SELECT_IN;
        row->values = WEIR_ARENA_ARRAY(arena, json_array_size(values) + 1, const char *);
        json_array_foreach(values, k, value)
        {
            if (json_is_string(value)) {
                row->values[row->n_values++] = weir_arena_strdup(arena, json_string_value(value));
            }
        }
    }
    return all;
}

struct volume_class *volume_class_read(const json_t *object)
{
    const char *name = weir_kube_text(object, "metadata.name");
    const json_t *topologies = json_object_get(object, "allowedTopologies");
    size_t i;
    json_t *one;
    if (name == NULL) {
        return NULL;
    }
    struct volume_class *made = weir_xalloc(sizeof *made);
    struct weir_arena *arena = &made->held.arena;
    *made = (struct volume_class){.held = {.n_holders = 1}};
    weir_arena_init(arena, 0);
    made->name = weir_arena_strdup(arena, name);
    made->provisions = !weir_kube_is(object, "provisioner", "") &&
                       !weir_kube_is(object, "provisioner", NO_PROVISIONER);
    made->is_delayed = weir_kube_is(object, "volumeBindingMode", "WaitForFirstConsumer");
    made->topologies = WEIR_ARENA_ARRAY(arena, json_array_size(topologies) + 1, struct select_all);
    json_array_foreach(topologies, i, one)
    {
        made->topologies[made->n_topologies++] = read_topology(one, arena);
    }
    return made;
}

/* ---- fitting ---------------------------------------------------------------------------------- */

bool volume_fits(const struct volume *volume, const struct volume_claim *claim)
{
    const struct volume_kind *has = &volume->kind, *wants = &claim->kind;
    return strcmp(has->class_name, wants->class_name) == 0 && has->bytes >= wants->bytes &&
           (has->modes & wants->modes) == wants->modes && has->is_block == wants->is_block &&
           (!claim->has_selector || select_matches(&claim->selector, volume->labels));
}

static bool is_one_of(const struct select_all *rows, size_t n, const struct place_node *node)
{
    for (size_t i = 0; i < n; i++) {
        if (select_matches(&rows[i], node->labels)) {
            return true;
        }
    }
    return false;
}

bool volume_is_at(const struct volume *volume, const struct place_node *node)
{
    return !volume->has_terms || is_one_of(volume->terms, volume->n_terms, node);
}

bool volume_class_is_at(const struct volume_class *made, const struct place_node *node)
{
    return made->n_topologies == 0 || is_one_of(made->topologies, made->n_topologies, node);
}
