#include "batch/disagree.h"

#include "base/arena.h"
#include "base/macros.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct kept {
    struct disagree_sample sample; /**< Texts are its own. */
    double confidence;
    int64_t place; /**< In the order of disagree_add. */
};

/** A heap whose first is the one to go. */
struct heap {
    struct kept items[DISAGREE_KEPT_MAX];
    size_t n;
    int64_t n_seen;
};

struct disagree {
    size_t max;
    int64_t n_added;
    struct heap kinds[DISAGREE_N_KINDS];
    struct disagree_confusion *pairs; /**< By label and answer; texts are its own. */
    size_t n_pairs, cap_pairs;
};

static const char *const kind_names[DISAGREE_N_KINDS] = {"live-right", "candidate-right",
                                                         "both-wrong"};

struct disagree *disagree_create(size_t max)
{
    struct disagree *disagree = weir_xalloc(sizeof *disagree);
    memset(disagree, 0, sizeof *disagree);
    disagree->max = WEIR_MIN(max, (size_t)DISAGREE_KEPT_MAX);
    return disagree;
}

static void kept_fini(struct kept *kept)
{
    free((char *)kept->sample.file);
    free((char *)kept->sample.sha256);
    free((char *)kept->sample.label);
    free((char *)kept->sample.answer);
    free((char *)kept->sample.live_answer);
}

void disagree_destroy(struct disagree *disagree)
{
    if (disagree == NULL) {
        return;
    }
    for (int kind = 0; kind < DISAGREE_N_KINDS; kind++) {
        for (size_t i = 0; i < disagree->kinds[kind].n; i++) {
            kept_fini(&disagree->kinds[kind].items[i]);
        }
    }
    for (size_t i = 0; i < disagree->n_pairs; i++) {
        free((char *)disagree->pairs[i].label);
        free((char *)disagree->pairs[i].answer);
    }
    free(disagree->pairs);
    free(disagree);
}

enum disagree_kind disagree_kind_of(const struct disagree_sample *sample)
{
    if (strcmp(sample->answer, sample->live_answer) == 0) {
        return DISAGREE_NONE;
    }
    if (strcmp(sample->live_answer, sample->label) == 0) {
        return DISAGREE_LIVE_RIGHT;
    }
    return strcmp(sample->answer, sample->label) == 0 ? DISAGREE_CANDIDATE_RIGHT
                                                      : DISAGREE_BOTH_WRONG;
}

const char *disagree_kind_name(enum disagree_kind kind)
{
    return kind < DISAGREE_N_KINDS ? kind_names[kind] : "alike";
}

int64_t disagree_count(const struct disagree *disagree, enum disagree_kind kind)
{
    return disagree->kinds[kind].n_seen;
}

/* ---- the sample ------------------------------------------------------------------------------ */

/* Of who is wrong, the surer one. */
static double confidence_of(const struct disagree_sample *sample, enum disagree_kind kind)
{
    double score = kind == DISAGREE_CANDIDATE_RIGHT ? 0 : sample->score;
    double live_score = kind == DISAGREE_LIVE_RIGHT ? 0 : sample->live_score;
    double surer = WEIR_MAX(score, live_score);
    return surer > 0 ? surer : 0; /* a score that is no number is the least */
}

static bool goes_before(const struct kept *a, const struct kept *b)
{
    return a->confidence != b->confidence ? a->confidence < b->confidence : a->place > b->place;
}

static void swap(struct kept *a, struct kept *b)
{
    struct kept held = *a;
    *a = *b;
    *b = held;
}

static void sift_up(struct heap *heap, size_t i)
{
    for (; i > 0 && goes_before(&heap->items[i], &heap->items[(i - 1) / 2]); i = (i - 1) / 2) {
        swap(&heap->items[i], &heap->items[(i - 1) / 2]);
    }
}

static void sift_down(struct heap *heap)
{
    for (size_t i = 0, first = 0;; i = first) {
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < heap->n; child++) {
            first = goes_before(&heap->items[child], &heap->items[first]) ? child : first;
        }
        if (first == i) {
            return;
        }
        swap(&heap->items[i], &heap->items[first]);
    }
}

static void keep(struct disagree *disagree, const struct disagree_sample *sample,
                 enum disagree_kind kind)
{
    struct heap *heap = &disagree->kinds[kind];
    struct kept kept = {*sample, confidence_of(sample, kind), disagree->n_added};
    heap->n_seen++;
    if (heap->n == disagree->max && !goes_before(&heap->items[0], &kept)) {
        return;
    }
    kept.sample.file = weir_xstrdup(sample->file);
    kept.sample.sha256 = weir_xstrdup(sample->sha256);
    kept.sample.label = weir_xstrdup(sample->label);
    kept.sample.answer = weir_xstrdup(sample->answer);
    kept.sample.live_answer = weir_xstrdup(sample->live_answer);
    if (heap->n == disagree->max) {
        kept_fini(&heap->items[0]);
        heap->items[0] = kept;
        sift_down(heap);
    } else {
        heap->items[heap->n++] = kept;
        sift_up(heap, heap->n - 1);
    }
}

void disagree_share(const size_t n[DISAGREE_N_KINDS], size_t max, size_t out[DISAGREE_N_KINDS])
{
    size_t n_given = 0;
    memset(out, 0, DISAGREE_N_KINDS * sizeof *out);
    for (bool is_full = false; !is_full;) {
        is_full = true;
        for (size_t kind = 0; kind < DISAGREE_N_KINDS && n_given < max; kind++) {
            if (out[kind] < n[kind]) {
                out[kind]++;
                n_given++;
                is_full = false;
            }
        }
    }
}

static int compare_kept(const void *a, const void *b)
{
    const struct kept *x = a, *y = b;
    return goes_before(x, y) ? 1 : goes_before(y, x) ? -1 : 0;
}

size_t disagree_choose(struct disagree *disagree, struct disagree_sample *rows)
{
    size_t n[DISAGREE_N_KINDS], share[DISAGREE_N_KINDS], n_rows = 0;
    for (size_t kind = 0; kind < DISAGREE_N_KINDS; kind++) {
        n[kind] = disagree->kinds[kind].n;
    }
    disagree_share(n, disagree->max, share);
    for (size_t kind = 0; kind < DISAGREE_N_KINDS; kind++) {
        struct heap *heap = &disagree->kinds[kind];
        struct kept sorted[DISAGREE_KEPT_MAX];
        memcpy(sorted, heap->items, heap->n * sizeof *sorted);
        qsort(sorted, heap->n, sizeof *sorted, compare_kept);
        for (size_t i = 0; i < share[kind]; i++) {
            rows[n_rows++] = sorted[i].sample;
        }
    }
    return n_rows;
}

/* ---- confusions ------------------------------------------------------------------------------ */

static int compare_pair(const struct disagree_confusion *pair, const char *label,
                        const char *answer)
{
    int order = strcmp(pair->label, label);
    return order != 0 ? order : strcmp(pair->answer, answer);
}

/* Where the pair is, or belongs. */
static size_t find_pair(const struct disagree *disagree, const char *label, const char *answer)
{
    size_t low = 0, high = disagree->n_pairs;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_pair(&disagree->pairs[middle], label, answer) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void grow_pairs(struct disagree *disagree)
{
    disagree->cap_pairs = disagree->cap_pairs == 0 ? 64 : 2 * disagree->cap_pairs;
    struct disagree_confusion *pairs = weir_xalloc(disagree->cap_pairs * sizeof *pairs);
    if (disagree->n_pairs > 0) {
        memcpy(pairs, disagree->pairs, disagree->n_pairs * sizeof *pairs);
    }
    free(disagree->pairs);
    disagree->pairs = pairs;
}

static void count_pair(struct disagree *disagree, const char *label, const char *answer, int64_t n,
                       int64_t live_n)
{
    size_t at = find_pair(disagree, label, answer);
    bool is_there =
        at < disagree->n_pairs && compare_pair(&disagree->pairs[at], label, answer) == 0;
    if (!is_there && disagree->n_pairs == DISAGREE_PAIRS_MAX) {
        return;
    }
    if (!is_there) {
        if (disagree->n_pairs == disagree->cap_pairs) {
            grow_pairs(disagree);
        }
        memmove(&disagree->pairs[at + 1], &disagree->pairs[at],
                (disagree->n_pairs - at) * sizeof *disagree->pairs);
        disagree->pairs[at] =
            (struct disagree_confusion){weir_xstrdup(label), weir_xstrdup(answer), 0, 0};
        disagree->n_pairs++;
    }
    disagree->pairs[at].n += n;
    disagree->pairs[at].live_n += live_n;
}

static int compare_frequent(const void *a, const void *b)
{
    const struct disagree_confusion *x = a, *y = b;
    int64_t n_x = x->n + x->live_n, n_y = y->n + y->live_n;
    if (n_x != n_y) {
        return n_x > n_y ? -1 : 1;
    }
    return compare_pair(x, y->label, y->answer);
}

size_t disagree_confusions(const struct disagree *disagree,
                           struct disagree_confusion out[DISAGREE_CONFUSIONS_MAX])
{
    size_t n = WEIR_MIN(disagree->n_pairs, (size_t)DISAGREE_CONFUSIONS_MAX);
    if (n == 0) {
        return 0;
    }
    struct disagree_confusion *sorted = weir_xalloc(disagree->n_pairs * sizeof *sorted);
    memcpy(sorted, disagree->pairs, disagree->n_pairs * sizeof *sorted);
    qsort(sorted, disagree->n_pairs, sizeof *sorted, compare_frequent);
    memcpy(out, sorted, n * sizeof *out);
    free(sorted);
    return n;
}

void disagree_add(struct disagree *disagree, const struct disagree_sample *sample)
{
    enum disagree_kind kind = disagree_kind_of(sample);
    if (strcmp(sample->answer, sample->label) != 0) {
        count_pair(disagree, sample->label, sample->answer, 1, 0);
    }
    if (strcmp(sample->live_answer, sample->label) != 0) {
        count_pair(disagree, sample->label, sample->live_answer, 0, 1);
    }
    if (kind != DISAGREE_NONE) {
        keep(disagree, sample, kind);
    }
    disagree->n_added++;
}
