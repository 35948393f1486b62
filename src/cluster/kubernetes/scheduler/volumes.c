#include "cluster/kubernetes/scheduler/volumes.h"

#include "cluster/kubernetes/scheduler/world.h"

#include <string.h>

#define NONE (-1)
#define POOL "volumes for " /* how the planner names a claim's */

/* ---- found by name ---------------------------------------------------------------------------- */

/* Rows by a text that stands at an offset of each. */
static int64_t find(const void *const *rows, size_t n, size_t offset, const char *text)
{
    size_t low = 0, high = text != NULL ? n : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(*(const char *const *)((const char *)rows[middle] + offset), text);
        if (order == 0) {
            return (int64_t)middle;
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return NONE;
}

int64_t volumes_find_claim(const struct volumes *all, const char *key)
{
    return find((const void *const *)all->claims, all->n_claims, offsetof(struct volume_claim, key),
                key);
}

static int64_t find_volume(const struct volumes *all, const char *name)
{
    return find((const void *const *)all->volumes, all->n_volumes, offsetof(struct volume, name),
                name);
}

static const struct volume_class *class_of(const struct volumes *all,
                                           const struct volume_claim *claim)
{
    int64_t at = find((const void *const *)all->classes, all->n_classes,
                      offsetof(struct volume_class, name), claim->kind.class_name);
    return at >= 0 ? all->classes[at] : NULL;
}

/* ---- what is assumed --------------------------------------------------------------------------------- */

static bool is_other_uid(const char *a, const char *b)
{
    return a != NULL && b != NULL && strcmp(a, b) != 0;
}

void volumes_index(struct volumes *all)
{
    all->assumed = (struct volumes_assumed){
        .nodes = WEIR_ARENA_ARRAY(all->arena, all->n_claims + 1, const char *),
        .pods = WEIR_ARENA_ARRAY(all->arena, all->n_claims + 1, const char *),
        .refused = WEIR_ARENA_ARRAY(all->arena, all->n_claims + 1, const char *),
        .claims = WEIR_ARENA_ARRAY(all->arena, all->n_volumes + 1, const char *),
        .volume_of = WEIR_ARENA_ARRAY(all->arena, all->n_claims + 1, int64_t)};
    all->fitting = WEIR_ARENA_ARRAY(all->arena, all->n_claims + 1, struct volumes_fitting);
    for (size_t i = 0; i < all->n_claims; i++) {
        all->assumed.volume_of[i] = NONE;
    }
    for (size_t i = 0; i < all->n_volumes; i++) {
        int64_t at = volumes_find_claim(all, all->volumes[i]->claim);
        if (at >= 0 && !is_other_uid(all->volumes[i]->claim_uid, all->claims[at]->uid)) {
            all->assumed.volume_of[at] = (int64_t)i;
        }
    }
}

void volumes_assume(const struct volumes *all, const struct place_pod *pod, const char *node,
                    const struct volumes_choice *choices, size_t n_choices)
{
    for (size_t i = 0; i < n_choices; i++) {
        const struct volumes_choice *choice = &choices[i];
        if (choice->volume >= 0) {
            all->assumed.claims[choice->volume] = all->claims[choice->claim]->key;
            all->assumed.volume_of[choice->claim] = choice->volume;
        } else {
            all->assumed.nodes[choice->claim] = node;
        }
    }
    for (size_t i = 0; i < pod->n_claims; i++) {
        int64_t at = volumes_find_claim(all, pod->claims[i].key);
        if (at >= 0) {
            all->assumed.pods[at] = pod->key;
        }
    }
}

static void copy(const struct volumes *all, const struct volumes_assumed *from,
                 struct volumes_assumed *to)
{
    memcpy(to->nodes, from->nodes, all->n_claims * sizeof to->nodes[0]);
    memcpy(to->pods, from->pods, all->n_claims * sizeof to->pods[0]);
    memcpy(to->claims, from->claims, all->n_volumes * sizeof to->claims[0]);
    memcpy(to->volume_of, from->volume_of, all->n_claims * sizeof to->volume_of[0]);
}

struct volumes_assumed volumes_keep(const struct volumes *all)
{
    struct volumes_assumed kept = {
        .nodes = WEIR_ARENA_ARRAY(all->arena, all->n_claims + 1, const char *),
        .pods = WEIR_ARENA_ARRAY(all->arena, all->n_claims + 1, const char *),
        .claims = WEIR_ARENA_ARRAY(all->arena, all->n_volumes + 1, const char *),
        .volume_of = WEIR_ARENA_ARRAY(all->arena, all->n_claims + 1, int64_t)};
    copy(all, &all->assumed, &kept);
    return kept;
}

void volumes_go_back(struct volumes *all, const struct volumes_assumed *kept)
{
    copy(all, kept, &all->assumed);
}

/* ---- one claim -------------------------------------------------------------------------------- */

static const char *node_for(const struct volumes *all, size_t claim)
{
    const char *told = all->claims[claim]->selected_node;
    return told != NULL ? told : all->assumed.nodes[claim];
}

static bool was_refused(const struct volumes *all, size_t claim, const char *node)
{
    const char *rest = all->assumed.refused[claim];
    size_t len = strlen(node);
    for (; rest != NULL && *rest != '\0'; rest += strcspn(rest, " ") + 1) {
        if (strcspn(rest, " ") == len && strncmp(rest, node, len) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_chosen(const struct volumes_choice *choices, size_t n, size_t volume)
{
    for (size_t i = 0; i < n; i++) {
        if (choices[i].volume == (int64_t)volume) {
            return true;
        }
    }
    return false;
}

struct sized {
    int64_t bytes;
    size_t volume;
};

static int by_size(const void *a, const void *b)
{
    const struct sized *left = a, *right = b;
    int order = (left->bytes > right->bytes) - (left->bytes < right->bytes);
    return order != 0 ? order : (left->volume > right->volume) - (left->volume < right->volume);
}

static const struct volumes_fitting *fitting_of(const struct volumes *all, size_t claim)
{
    struct volumes_fitting *fitting = &all->fitting[claim];
    if (fitting->is_known) {
        return fitting;
    }
    struct sized *sized = WEIR_ARENA_ARRAY(all->arena, all->n_volumes + 1, struct sized);
    for (size_t i = 0; i < all->n_volumes; i++) {
        if (all->volumes[i]->is_free && volume_fits(all->volumes[i], all->claims[claim])) {
            sized[fitting->n++] = (struct sized){all->volumes[i]->kind.bytes, i};
        }
    }
    qsort(sized, fitting->n, sizeof sized[0], by_size);
    fitting->rows = WEIR_ARENA_ARRAY(all->arena, fitting->n + 1, size_t);
    for (size_t i = 0; i < fitting->n; i++) {
        fitting->rows[i] = sized[i].volume;
    }
    fitting->is_known = true;
    return fitting;
}

/* The smallest that is free there, by name among equals. */
static int64_t find_free(const struct volumes *all, size_t claim, const struct place_node *node,
                         const struct volumes_choice *before, size_t n_before)
{
    const struct volumes_fitting *fitting = fitting_of(all, claim);
    for (size_t i = 0; i < fitting->n; i++) {
        size_t volume = fitting->rows[i];
        if (all->assumed.claims[volume] == NULL && volume_is_at(all->volumes[volume], node) &&
            !is_chosen(before, n_before, volume)) {
            return (int64_t)volume;
        }
    }
    return NONE;
}

/* A claim that waits for its pod's node. */
static bool choose_delayed(const struct volumes *all, size_t at, const struct place_node *node,
                           bool is_of_gang, struct volumes_choice *out, size_t *out_n)
{
    const struct volume_claim *claim = all->claims[at];
    const struct volume_class *made = class_of(all, claim);
    int64_t volume = all->assumed.volume_of[at];
    if (volume >= 0) {
        return volume_is_at(all->volumes[volume], node);
    }
    bool can_be_made = made->provisions && volume_class_is_at(made, node);
    if (node_for(all, at) != NULL) {
        bool is_elsewhere = strcmp(node_for(all, at), node->name) != 0,
             is_for_many = (claim->kind.modes & (VOLUME_RWX | VOLUME_ROX)) != 0;
        return can_be_made && (!is_elsewhere || (is_of_gang && is_for_many));
    }
    can_be_made = can_be_made && !was_refused(all, at, node->name);
    volume = find_free(all, at, node, out, *out_n);
    if (volume >= 0 || can_be_made) {
        out[(*out_n)++] = (struct volumes_choice){.claim = at, .volume = volume};
    }
    return volume >= 0 || can_be_made;
}

static bool choose(const struct volumes *all, size_t at, const struct place_node *node,
                   bool is_of_gang, struct volumes_choice *out, size_t *out_n)
{
    const struct volume_claim *claim = all->claims[at];
    if (!claim->is_bound) {
        return choose_delayed(all, at, node, is_of_gang, out, out_n);
    }
    int64_t volume = find_volume(all, claim->volume);
    return volume >= 0 && volume_is_at(all->volumes[volume], node);
}

/* ---- what is wrong with one ------------------------------------------------------------------- */

/* Another pod that has it; NULL: none. */
static const char *user_of(const struct volumes *all, size_t at, const struct place_pod *pod)
{
    const char *key = all->claims[at]->key;
    const char *assumed = all->assumed.pods[at];
    if (assumed != NULL && strcmp(assumed, pod->key) != 0) {
        return assumed;
    }
    for (size_t i = 0; i < all->n_pods; i++) {
        const struct world_pod *other = &all->pods[i];
        bool has_place = other->node != NULL && !other->pod->is_over && other->pod != pod;
        for (size_t k = 0; k < other->pod->n_claims && has_place; k++) {
            if (strcmp(other->pod->claims[k].key, key) == 0) {
                return other->pod->key;
            }
        }
    }
    return NULL;
}

static const char *wrong_unbound(const struct volumes *all, const struct volume_claim *claim)
{
    const struct volume_class *made = class_of(all, claim);
    if (made == NULL && claim->kind.class_name[0] != '\0') {
        return weir_arena_printf(all->arena,
                                 "There is no StorageClass \"%.100s\", of which its "
                                 "PersistentVolumeClaim %.200s is.",
                                 claim->kind.class_name, claim->key);
    }
    return made != NULL && made->is_delayed && claim->volume == NULL
               ? NULL
               : weir_arena_printf(all->arena,
                                   "Its PersistentVolumeClaim %.200s is not bound yet, and is not "
                                   "one that waits for its pod's node.",
                                   claim->key);
}

static const char *wrong_claim(const struct volumes *all, const struct place_pod *pod,
                               const struct place_claim *wanted)
{
    int64_t at = volumes_find_claim(all, wanted->key);
    const struct volume_claim *claim = at >= 0 ? all->claims[at] : NULL;
    const char *user;
    if (claim == NULL) {
        return weir_arena_printf(all->arena, "There is no PersistentVolumeClaim %.200s.",
                                 wanted->key);
    }
    if (wanted->is_ephemeral &&
        (claim->owner_uid == NULL || strcmp(claim->owner_uid, pod->uid) != 0)) {
        return weir_arena_printf(
            all->arena, "PersistentVolumeClaim %.200s was not made for this pod.", claim->key);
    }
    if (claim->is_leaving || claim->is_lost) {
        return weir_arena_printf(all->arena, "Its PersistentVolumeClaim %.200s %s.", claim->key,
                                 claim->is_leaving ? "is being deleted" : "has lost its volume");
    }
    if ((claim->kind.modes & VOLUME_RWOP) != 0 && (user = user_of(all, (size_t)at, pod)) != NULL) {
        return weir_arena_printf(all->arena,
                                 "Its PersistentVolumeClaim %.200s is ReadWriteOncePod, and pod "
                                 "%.200s has it.",
                                 claim->key, user);
    }
    if (claim->is_bound) {
        return find_volume(all, claim->volume) >= 0
                   ? NULL
                   : weir_arena_printf(all->arena,
                                       "PersistentVolume %.100s, to which its "
                                       "PersistentVolumeClaim %.200s is bound, is not there.",
                                       claim->volume, claim->key);
    }
    return wrong_unbound(all, claim);
}

/* ---- pools ------------------------------------------------------------------------------------ */

static bool are_alike(const struct volume_claim *a, const struct volume_claim *b)
{
    return strcmp(a->kind.class_name, b->kind.class_name) == 0 && a->kind.bytes == b->kind.bytes &&
           a->kind.modes == b->kind.modes && a->kind.is_block == b->kind.is_block &&
           !a->has_selector && !b->has_selector;
}

const char *volumes_pool(const struct volumes *all, const struct place_pod *pod, size_t i)
{
    int64_t at = volumes_find_claim(all, pod->claims[i].key);
    const struct volume_claim *claim = at >= 0 ? all->claims[at] : NULL;
    if (claim == NULL || claim->is_bound || all->assumed.volume_of[at] >= 0 ||
        node_for(all, (size_t)at) != NULL) {
        return NULL;
    }
    const struct volume_class *made = class_of(all, claim);
    if (made == NULL || made->provisions) {
        return NULL;
    }
    size_t first = 0;
    while (first < (size_t)at && !are_alike(all->claims[first], claim)) {
        first++;
    }
    return weir_arena_printf(all->arena, POOL "%s", all->claims[first]->key);
}

bool volumes_pool_free(const struct volumes *all, const char *name, const struct place_node *node,
                       int64_t *out)
{
    bool is_pool = all != NULL && strncmp(name, POOL, strlen(POOL)) == 0;
    int64_t at = is_pool ? volumes_find_claim(all, name + strlen(POOL)) : NONE, n = 0;
    if (at < 0) {
        return false;
    }
    const struct volumes_fitting *fitting = fitting_of(all, (size_t)at);
    for (size_t i = 0; i < fitting->n; i++) {
        size_t volume = fitting->rows[i];
        n += all->assumed.claims[volume] == NULL && volume_is_at(all->volumes[volume], node);
    }
    *out = n;
    return true;
}

/* ---- all of a pod's --------------------------------------------------------------------------- */

bool volumes_choose(const struct volumes *all, const struct place_pod *pod,
                    const struct place_node *node, bool is_of_gang, struct volumes_choice *out,
                    size_t *out_n)
{
    *out_n = 0;
    for (size_t i = 0; i < pod->n_claims; i++) {
        if (wrong_claim(all, pod, &pod->claims[i]) != NULL ||
            !choose(all, (size_t)volumes_find_claim(all, pod->claims[i].key), node, is_of_gang, out,
                    out_n)) {
            return false;
        }
    }
    return true;
}

/* Nothing is wrong with any of its claims. */
static bool is_allowed(const struct volumes *all, const struct place_pod *pod,
                       const struct place_node *node, struct volumes_choice *scratch)
{
    size_t n = 0;
    for (size_t i = 0; i < pod->n_claims; i++) {
        int64_t at = volumes_find_claim(all, pod->claims[i].key);
        if (at < 0 || !choose(all, (size_t)at, node, false, scratch, &n)) {
            return false;
        }
    }
    return true;
}

void volumes_allow(const struct volumes *all, const struct place_pod *pod,
                   const struct place_node *const *nodes, size_t n_nodes, bool *allowed)
{
    struct volumes_choice *scratch =
        WEIR_ARENA_ARRAY(all->arena, pod->n_claims + 1, struct volumes_choice);
    for (size_t i = 0; i < n_nodes && pod->n_claims > 0; i++) {
        allowed[i] = allowed[i] && is_allowed(all, pod, nodes[i], scratch);
    }
}

static const char *why_nowhere(const struct volumes *all, const struct volume_claim *claim,
                               size_t at)
{
    const char *node = node_for(all, at);
    if (all->assumed.refused[at] != NULL && node == NULL) {
        return weir_arena_printf(all->arena,
                                 "No volume could be made for its PersistentVolumeClaim %.200s on "
                                 "any node that it may have: that is tried again.",
                                 claim->key);
    }
    if (claim->is_bound || all->assumed.volume_of[at] >= 0) {
        return weir_arena_printf(all->arena,
                                 "No node may have the volume of its PersistentVolumeClaim %.200s.",
                                 claim->key);
    }
    return node != NULL
               ? weir_arena_printf(all->arena,
                                   "The volume of its PersistentVolumeClaim %.200s is to be made "
                                   "on node %.200s, which cannot have it.",
                                   claim->key, node)
               : weir_arena_printf(all->arena,
                                   "No free PersistentVolume fits its PersistentVolumeClaim "
                                   "%.200s, and StorageClass %.100s makes none on any node.",
                                   claim->key, claim->kind.class_name);
}

/* NULL: some node may have it. */
static const char *wrong_everywhere(const struct volumes *all, const char *key,
                                    const struct place_node *const *nodes, size_t n_nodes)
{
    struct volumes_choice scratch;
    size_t at = (size_t)volumes_find_claim(all, key);
    for (size_t i = 0; i < n_nodes; i++) {
        size_t n = 0;
        if (choose(all, at, nodes[i], false, &scratch, &n)) {
            return NULL;
        }
    }
    return why_nowhere(all, all->claims[at], at);
}

const char *volumes_wrong(const struct volumes *all, const struct place_pod *pod,
                          const struct place_node *const *nodes, size_t n_nodes)
{
    const char *why = pod->n_claims > 0 ? all->why : NULL;
    for (size_t i = 0; i < pod->n_claims && why == NULL; i++) {
        why = wrong_claim(all, pod, &pod->claims[i]);
    }
    for (size_t i = 0; i < pod->n_claims && why == NULL; i++) {
        why = wrong_everywhere(all, pod->claims[i].key, nodes, n_nodes);
    }
    return why;
}

const struct volume_claim *volumes_unbound(const struct volumes *all, const struct place_pod *pod)
{
    for (size_t i = 0; i < pod->n_claims; i++) {
        int64_t at = volumes_find_claim(all, pod->claims[i].key);
        if (at >= 0 && !all->claims[at]->is_bound) {
            return all->claims[at];
        }
    }
    return NULL;
}
