#include "sched/place/fgd.h"

#include "base/macros.h"

#include <stdlib.h>
#include <string.h>

#define WHOLE          1000
#define CACHE_SLOTS    ((uint32_t)1 << 15)
#define CACHE_WORDS    ((uint32_t)1 << 18)
#define FREE_PER_WORD  4
#define SCARCITY_FLOOR 20000 /* Thousandths: below so much usable room a kind gets no scarcer. */

struct fgd_group {
    int32_t first, n;
    int32_t n_devices, device_milli;
    int64_t device_memory_bytes;
};

/** A state's key lies in `words` from `first`; a slot is empty if its length is 0. */
struct cache_slot {
    uint64_t hash;
    int64_t value;
    uint32_t first, n_words;
};

struct fgd_cache {
    struct cache_slot slots[CACHE_SLOTS];
    int64_t words[CACHE_WORDS];
    uint32_t n_slots, n_words;
};

static int compare(int64_t left, int64_t right)
{
    return left < right ? -1 : left > right;
}

/** Kinds of a group stand together; within it by what else tells them apart. */
static int by_need(const void *left, const void *right)
{
    const struct fgd_kind *l = left, *r = right;
    int order = compare(l->n_devices, r->n_devices);
    order = order != 0 ? order : compare(l->device_milli, r->device_milli);
    order = order != 0 ? order : compare(l->device_memory_bytes, r->device_memory_bytes);
    order = order != 0 ? order : compare(l->constraint, r->constraint);
    order = order != 0 ? order : compare(l->cpu_milli, r->cpu_milli);
    return order != 0 ? order : compare(l->memory_bytes, r->memory_bytes);
}

/** Keep the first `bits` bits of a number, rounded up. */
static int64_t round_up(int64_t value, int bits)
{
    int shift = 0;
    while (value >> shift >= (int64_t)1 << bits) {
        shift++;
    }
    int64_t unit = (int64_t)1 << shift;
    return (value + unit - 1) / unit * unit;
}

static int32_t merge_equal(struct fgd_kind *kinds, int32_t n)
{
    int32_t n_kept = 0;
    qsort(kinds, (size_t)n, sizeof *kinds, by_need);
    for (int32_t i = 0; i < n; i++) {
        if (n_kept > 0 && by_need(&kinds[n_kept - 1], &kinds[i]) == 0) {
            kinds[n_kept - 1].count += kinds[i].count;
        } else {
            kinds[n_kept++] = kinds[i];
        }
    }
    return n_kept;
}

/** What still is too many after the coarsest rounding falls in with its neighbours. */
static int32_t merge_neighbours(struct fgd_kind *kinds, int32_t n)
{
    int32_t n_kept = 0;
    for (int32_t i = 0; i < n; i++) {
        if ((int64_t)i * FGD_KINDS_MAX / n < n_kept) {
            kinds[n_kept - 1].count += kinds[i].count;
        } else {
            kinds[n_kept++] = kinds[i];
        }
    }
    return n_kept;
}

static int32_t merge(struct fgd_kind *kinds, int32_t n)
{
    n = merge_equal(kinds, n);
    for (int bits = 5; bits >= 0 && n > FGD_KINDS_MAX; bits--) {
        for (int32_t i = 0; i < n; i++) { /* In the end without memory. */
            kinds[i].cpu_milli = round_up(kinds[i].cpu_milli, WEIR_MAX(bits, 1));
            kinds[i].memory_bytes = bits > 0 ? round_up(kinds[i].memory_bytes, bits) : 0;
        }
        n = merge_equal(kinds, n);
    }
    return n > FGD_KINDS_MAX ? merge_neighbours(kinds, n) : n;
}

static void make_groups(struct fgd_mix *mix)
{
    for (int32_t i = 0; i < mix->n_kinds; i++) {
        const struct fgd_kind *kind = &mix->kinds[i];
        struct fgd_group *group = mix->n_groups > 0 ? &mix->groups[mix->n_groups - 1] : NULL;
        if (group == NULL || group->n_devices != kind->n_devices ||
            group->device_milli != kind->device_milli ||
            group->device_memory_bytes != kind->device_memory_bytes) {
            group = &mix->groups[mix->n_groups++];
            *group = (struct fgd_group){.first = i,
                                        .n_devices = kind->n_devices,
                                        .device_milli = kind->device_milli,
                                        .device_memory_bytes = kind->device_memory_bytes};
        }
        group->n++;
    }
}

/** CPUs and memory that come with a device on average, by the tasks' popularity. */
static void average(struct fgd_mix *mix)
{
    __int128 cpu = 0, memory = 0, milli = 0;
    for (int32_t i = 0; i < mix->n_kinds; i++) {
        const struct fgd_kind *kind = &mix->kinds[i];
        int32_t each = kind->device_milli > 0 ? kind->device_milli : WHOLE;
        cpu += (__int128)kind->count * kind->cpu_milli;
        memory += (__int128)kind->count * kind->memory_bytes;
        milli += (__int128)kind->count * kind->n_devices * each;
    }
    mix->cpu_per_device = milli == 0 ? 0 : (int64_t)(cpu * WHOLE / milli);
    mix->memory_per_device = milli == 0 ? 0 : (int64_t)(memory * WHOLE / milli);
}

weir_status fgd_mix_init(struct fgd_mix *mix, const struct fgd_kind *kinds, int32_t n_kinds,
                         const struct fgd_class *classes, int32_t depth_pct)
{
    *mix = (struct fgd_mix){.classes = classes, .depth_pct = depth_pct};
    mix->kinds = calloc((size_t)n_kinds + 1, sizeof *mix->kinds);
    mix->cache = calloc(1, sizeof *mix->cache);
    if (mix->kinds == NULL || mix->cache == NULL) {
        return WEIR_ERR_NOMEM;
    }
    for (int32_t i = 0; i < n_kinds; i++) {
        if (kinds[i].n_devices > 0 && kinds[i].count > 0) {
            mix->kinds[mix->n_kinds++] = kinds[i];
        }
    }
    mix->n_kinds = merge(mix->kinds, mix->n_kinds);
    mix->groups = calloc((size_t)mix->n_kinds + 1, sizeof *mix->groups);
    mix->weights = calloc((size_t)mix->n_kinds + 1, sizeof *mix->weights);
    if (mix->groups == NULL || mix->weights == NULL) {
        return WEIR_ERR_NOMEM;
    }
    make_groups(mix);
    average(mix);
    fgd_weigh(mix, NULL, 0);
    return WEIR_OK;
}

void fgd_mix_fini(struct fgd_mix *mix)
{
    free(mix->kinds);
    free(mix->weights);
    free(mix->groups);
    free(mix->cache);
    *mix = (struct fgd_mix){0};
}

int64_t fgd_need(const struct fgd_class *class_, int32_t device_milli, int64_t device_memory_bytes)
{
    int64_t need = device_milli;
    if (need == 0) {
        int64_t whole = class_->device_memory_bytes;
        need = device_memory_bytes > whole || whole == 0
                   ? WHOLE + 1
                   : (int64_t)(((__int128)device_memory_bytes * WHOLE + whole - 1) / whole);
        need = WEIR_MAX(need, 1);
    }
    return need < WHOLE && class_->is_whole_only ? WHOLE + 1 : need;
}

/** Thousandths of devices that a supply lasts for; at most `most`. */
static int64_t lasts(int64_t supply, int64_t per_device, int64_t most)
{
    if (per_device == 0 || (__int128)supply * WHOLE >= (__int128)most * per_device) {
        return most;
    }
    return (int64_t)((__int128)supply * WHOLE / per_device);
}

/** Usable of the state for one kind, whose task takes `first` of the `usable` that has room. */
static int64_t usable_for(const struct fgd_mix *mix, const struct fgd_kind *kind,
                          const struct fgd_state *state, int64_t usable, int64_t first)
{
    if (kind->cpu_milli > state->cpu_milli || kind->memory_bytes > state->memory_bytes ||
        !mix->classes[state->class_].allows[kind->constraint]) {
        return 0;
    }
    int64_t rest = usable - first;
    rest = lasts(state->cpu_milli - kind->cpu_milli, mix->cpu_per_device, rest);
    rest = lasts(state->memory_bytes - kind->memory_bytes, mix->memory_per_device, rest);
    return usable - (usable - first - rest) * mix->depth_pct / 100;
}

/** For one group: what its devices with room add up to, and what of it one task takes; 0: none. */
static int64_t fit_group(const struct fgd_mix *mix, const struct fgd_group *group,
                         const struct fgd_state *state, int64_t *out_usable)
{
    int64_t need =
        fgd_need(&mix->classes[state->class_], group->device_milli, group->device_memory_bytes);
    int64_t usable = 0;
    int32_t d = 0;
    for (; d < state->n_devices && state->free[d] >= need; d++) {
        usable += state->free[d];
    }
    *out_usable = usable;
    return d < group->n_devices ? 0 : need * group->n_devices;
}

void fgd_usable(const struct fgd_mix *mix, const struct fgd_state *state, int64_t times,
                int64_t *sums)
{
    for (int32_t g = 0; g < mix->n_groups; g++) {
        const struct fgd_group *group = &mix->groups[g];
        int64_t usable, first = fit_group(mix, group, state, &usable);
        for (int32_t i = group->first; i < group->first + group->n && first > 0; i++) {
            sums[i] += times * usable_for(mix, &mix->kinds[i], state, usable, first);
        }
    }
}

static int64_t square_root(int64_t value)
{
    int64_t root = 0;
    for (int64_t bit = (int64_t)1 << 31; bit > 0; bit >>= 1) {
        if ((root + bit) * (root + bit) <= value) {
            root += bit;
        }
    }
    return root;
}

/** (room / usable)^(3/4) with 20 bits after the point, 2^15 at most. */
static int64_t scarcity(int64_t room, int64_t usable)
{
    int64_t ratio = (int64_t)(((__int128)room << 20) / (usable + SCARCITY_FLOOR));
    ratio = WEIR_MIN(WEIR_MAX(ratio, 1), (int64_t)1 << 35);
    int64_t root = square_root(ratio << 20);
    return WEIR_MAX(square_root(ratio * root), 1);
}

static void cache_empty(struct fgd_cache *cache)
{
    if (cache->n_slots > 0) {
        memset(cache->slots, 0, sizeof cache->slots);
    }
    cache->n_slots = 0;
    cache->n_words = 0;
}

void fgd_weigh(struct fgd_mix *mix, const int64_t *usable, int64_t room)
{
    __int128 total = 0;
    for (int32_t i = 0; i < mix->n_kinds; i++) {
        int64_t factor = usable == NULL ? (int64_t)1 << 20 : scarcity(room, usable[i]);
        int64_t count = WEIR_MIN(mix->kinds[i].count, (int64_t)1 << 27);
        mix->weights[i] = count * factor;
        total += mix->weights[i];
    }
    for (int32_t i = 0; i < mix->n_kinds; i++) {
        mix->weights[i] = (int64_t)((__int128)mix->weights[i] * FGD_WEIGHT_ONE / total);
    }
    cache_empty(mix->cache);
}

static int64_t compute_value(const struct fgd_mix *mix, const struct fgd_state *state)
{
    int64_t value = 0;
    for (int32_t g = 0; g < mix->n_groups; g++) {
        const struct fgd_group *group = &mix->groups[g];
        int64_t usable, first = fit_group(mix, group, state, &usable);
        for (int32_t i = group->first; i < group->first + group->n && first > 0; i++) {
            value += mix->weights[i] * usable_for(mix, &mix->kinds[i], state, usable, first);
        }
    }
    return value;
}

/** Write a state's key; 0 if it is longer than `max`. */
static uint32_t write_key(const struct fgd_state *state, int64_t *words, uint32_t max)
{
    uint32_t n = 3;
    if ((uint32_t)state->n_devices / FREE_PER_WORD + 4 > max) {
        return 0;
    }
    words[0] = (int64_t)state->class_ << 32 | state->n_devices;
    words[1] = state->cpu_milli;
    words[2] = state->memory_bytes;
    for (int32_t d = 0; d < state->n_devices; d++) {
        if (d % FREE_PER_WORD == 0) {
            words[n++] = 0;
        }
        words[n - 1] = (int64_t)((uint64_t)words[n - 1] << 16 | (uint64_t)state->free[d]);
    }
    return n;
}

static uint64_t hash_words(const int64_t *words, uint32_t n)
{
    uint64_t hash = n;
    for (uint32_t i = 0; i < n; i++) {
        hash = (hash ^ (uint64_t)words[i]) * 0x9e3779b97f4a7c15U;
        hash ^= hash >> 29;
    }
    return hash;
}

int64_t fgd_value(struct fgd_mix *mix, const struct fgd_state *state)
{
    struct fgd_cache *cache = mix->cache;
    if (state->n_devices == 0 || state->free[0] == 0) {
        return 0;
    }
    if (cache->n_slots > CACHE_SLOTS / 4 * 3 || cache->n_words + 64 > CACHE_WORDS) {
        cache_empty(cache);
    }
    int64_t *key = cache->words + cache->n_words;
    uint32_t n_words = write_key(state, key, CACHE_WORDS - cache->n_words);
    if (n_words == 0) {
        return compute_value(mix, state);
    }
    uint64_t hash = hash_words(key, n_words);
    uint32_t at = (uint32_t)(hash >> 40) & (CACHE_SLOTS - 1);
    for (; cache->slots[at].n_words > 0; at = (at + 1) & (CACHE_SLOTS - 1)) {
        const struct cache_slot *slot = &cache->slots[at];
        if (slot->hash == hash && slot->n_words == n_words &&
            memcmp(cache->words + slot->first, key, n_words * sizeof *key) == 0) {
            return slot->value;
        }
    }
    int64_t value = compute_value(mix, state);
    cache->slots[at] = (struct cache_slot){hash, value, cache->n_words, n_words};
    cache->n_words += n_words;
    cache->n_slots++;
    return value;
}

int64_t fgd_fragmentation(struct fgd_mix *mix, const struct fgd_state *state)
{
    int64_t room = 0, weights = 0;
    for (int32_t d = 0; d < state->n_devices; d++) {
        room += state->free[d];
    }
    for (int32_t i = 0; i < mix->n_kinds; i++) {
        weights += mix->weights[i];
    }
    return room * weights - fgd_value(mix, state);
}

/** Take `need` from the device at `d` and put it where it then belongs. @return Where that is. */
static int32_t lower(struct fgd_state *state, int32_t d, int64_t need)
{
    int32_t left = state->free[d] - (int32_t)need;
    for (; d + 1 < state->n_devices && state->free[d + 1] > left; d++) {
        state->free[d] = state->free[d + 1];
    }
    state->free[d] = left;
    return d;
}

static void raise_back(struct fgd_state *state, int32_t d, int64_t need)
{
    int32_t before = state->free[d] + (int32_t)need;
    for (; d > 0 && state->free[d - 1] < before; d--) {
        state->free[d] = state->free[d - 1];
    }
    state->free[d] = before;
}

/** Which device loses least, of those that differ; ties: the fullest. */
static int32_t best_device(struct fgd_mix *mix, struct fgd_state *state, int32_t n_fit,
                           int64_t need)
{
    int64_t best_value = INT64_MIN;
    int32_t best = 0;
    for (int32_t d = n_fit - 1; d >= 0; d--) {
        if (d + 1 < n_fit && state->free[d] == state->free[d + 1]) {
            continue; /* One of several alike has been tried. */
        }
        int32_t moved = lower(state, d, need);
        int64_t value = fgd_value(mix, state);
        raise_back(state, moved, need);
        if (value > best_value) {
            best_value = value;
            best = d;
        }
    }
    return best;
}

int64_t fgd_take(struct fgd_mix *mix, struct fgd_state *state, int64_t cpu_milli,
                 int64_t memory_bytes, int32_t n_devices, int64_t need, int32_t *free_of)
{
    int32_t n_fit = 0;
    while (n_fit < state->n_devices && state->free[n_fit] >= need) {
        n_fit++;
    }
    if (cpu_milli > state->cpu_milli || memory_bytes > state->memory_bytes ||
        (n_devices > 0 && n_fit < n_devices)) {
        return INT64_MIN;
    }
    state->cpu_milli -= cpu_milli;
    state->memory_bytes -= memory_bytes;
    *free_of = 0;
    if (n_devices == 1) {
        int32_t d = best_device(mix, state, n_fit, need);
        *free_of = state->free[d];
        lower(state, d, need);
    }
    for (int32_t i = 0; n_devices > 1 && i < n_devices; i++) { /* Several: the fullest. */
        lower(state, n_fit - 1 - i, need);
    }
    return fgd_value(mix, state);
}
