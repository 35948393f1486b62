#include "control/queue_tree.h"

#include "base/grow.h"
#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_PRIORITY 100
#define PPM              1000000
#define SAVE_MOST_MS     ((int64_t)24 * 3600 * 1000) /* each job has a time of its own, which is less */

void queue_tree_init(struct queue_tree *tree)
{
    *tree = (struct queue_tree){.revision = -1, .past_revision = -1};
    weir_arena_init(&tree->arena, 0);
    weir_arena_init(&tree->past_arena, 0);
}

void queue_tree_fini(struct queue_tree *tree)
{
    weir_arena_fini(&tree->arena);
    weir_arena_fini(&tree->past_arena);
    free(tree->rows);
    free(tree->where);
    free(tree->projects);
}

/* ---- projects -------------------------------------------------------------------------------- */

/* Where it is, or belongs. */
static size_t find_project(const struct queue_tree *tree, const char *name, bool *out_is_there)
{
    size_t low = 0, high = tree->n_projects;
    *out_is_there = false;
    while (low < high && !*out_is_there) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(tree->projects[middle].name, name);
        *out_is_there = order == 0;
        low = order < 0 ? middle + 1 : order == 0 ? middle : low;
        high = order > 0 ? middle : high;
    }
    return low;
}

static void put_project(struct queue_tree *tree, const char *name, int32_t row)
{
    bool is_there;
    size_t at = find_project(tree, name, &is_there);
    if (is_there) {
        return;
    }
    weir_xgrow(&tree->projects, sizeof *tree->projects, tree->n_projects, &tree->projects_cap);
    memmove(tree->projects + at + 1, tree->projects + at,
            (tree->n_projects - at) * sizeof *tree->projects);
    tree->projects[at] = (struct queue_tree_project){name, row};
    tree->n_projects++;
}

void queue_tree_begin(struct queue_tree *tree)
{
    size_t n = 0;
    for (size_t i = 0; i < tree->n_projects; i++) {
        if (tree->projects[i].row >= 0 && tree->projects[i].row < tree->n_set) {
            tree->projects[n++] = tree->projects[i];
        }
    }
    tree->n_projects = n;
    tree->n_rows = tree->n_set;
}

void queue_tree_add(struct queue_tree *tree, const char *project)
{
    put_project(tree, project, -1);
}

static struct weir_sched_queue *add_row(struct queue_tree *tree)
{
    weir_xgrow(&tree->rows, sizeof *tree->rows, (size_t)tree->n_rows, &tree->rows_cap);
    return &tree->rows[tree->n_rows++];
}

static int by_name(const void *left, const void *right)
{
    return strcmp(((const struct weir_past_use *)left)->project,
                  ((const struct weir_past_use *)right)->project);
}

/* What projects have had lately, and queues above others what those have had: parents come first. */
static void put_past(struct queue_tree *tree)
{
    for (int32_t q = 0; q < tree->n_rows; q++) {
        memset(tree->rows[q].usage_ppm, 0, sizeof tree->rows[q].usage_ppm);
    }
    for (size_t i = 0; tree->n_past > 0 && i < tree->n_projects; i++) {
        const struct weir_past_use key = {.project = (char *)tree->projects[i].name};
        const struct weir_past_use *past =
            bsearch(&key, tree->past, tree->n_past, sizeof *tree->past, by_name);
        if (past != NULL) {
            int64_t *ppm = tree->rows[tree->projects[i].row].usage_ppm;
            ppm[WEIR_SCHED_ACCELERATOR] = llround(past->devices * PPM);
            ppm[WEIR_SCHED_CPU] = llround(past->cpus * PPM);
            ppm[WEIR_SCHED_MEMORY] = llround(past->memory * PPM);
        }
    }
    for (int32_t q = tree->n_rows - 1; q >= 0; q--) {
        int32_t parent = tree->rows[q].parent;
        for (int r = 0; parent >= 0 && r < WEIR_SCHED_N_RESOURCES; r++) {
            int64_t *ppm = &tree->rows[parent].usage_ppm[r];
            *ppm = WEIR_MIN(*ppm + tree->rows[q].usage_ppm[r], (int64_t)PPM);
        }
    }
}

void queue_tree_end(struct queue_tree *tree)
{
    const struct weir_sched_share share = {0, 1, WEIR_SCHED_UNLIMITED};
    for (size_t i = 0; i < tree->n_projects; i++) {
        if (tree->projects[i].row >= 0) {
            continue;
        }
        tree->projects[i].row = tree->n_rows;
        *add_row(tree) = (struct weir_sched_queue){.name = tree->projects[i].name,
                                                   .parent = WEIR_SCHED_NONE,
                                                   .priority = DEFAULT_PRIORITY,
                                                   .shares = {share, share, share},
                                                   .preempt_min_run_ms = -1,
                                                   .reclaim_min_run_ms = -1};
    }
    put_past(tree);
}

const struct queue_tree_where *queue_tree_where(const struct queue_tree *tree, int32_t row)
{
    return row >= 0 && row < tree->n_set ? &tree->where[row] : NULL;
}

bool queue_tree_names_clusters(const struct queue_tree *tree)
{
    bool is_any = false;
    for (int32_t q = 0; q < tree->n_set; q++) {
        is_any = is_any || tree->where[q].n_names > 0;
    }
    return is_any;
}

int32_t queue_tree_find(const struct queue_tree *tree, const char *project)
{
    bool is_there;
    size_t at = find_project(tree, project, &is_there);
    return is_there ? tree->projects[at].row : WEIR_SCHED_NONE;
}

weir_status queue_tree_rules(const struct queue_tree *tree, bool are_queues_set,
                             struct weir_sched_profile *out, struct weir_error *err)
{
    WEIR_TRY(weir_sched_profile_named("default", out, err));
    out->actions = are_queues_set ? "allocate,reclaim,preempt" : "allocate";
    out->evict_grace_ms = SAVE_MOST_MS;
    out->usage_weight_ppm = llround(tree->past_rule.weight * PPM);
    return WEIR_OK;
}

/* ---- queues of the store --------------------------------------------------------------------- */

static struct weir_sched_share share_of(const struct weir_queue_share *share)
{
    return (struct weir_sched_share){share->guarantee, share->weight, share->limit};
}

static void put_shares(struct weir_arena *arena, const struct weir_queue_shares *given,
                       struct weir_sched_share *shares,
                       const struct weir_sched_model_share **out_models, int32_t *out_n_models)
{
    struct weir_sched_model_share *models =
        WEIR_ARENA_ARRAY(arena, given->n_models + 1, struct weir_sched_model_share);
    shares[WEIR_SCHED_ACCELERATOR] = share_of(&given->of[WEIR_QUEUE_ACCELERATORS]);
    shares[WEIR_SCHED_CPU] = share_of(&given->of[WEIR_QUEUE_CPUS]);
    shares[WEIR_SCHED_MEMORY] = share_of(&given->of[WEIR_QUEUE_MEMORY]);
    for (size_t i = 0; i < given->n_models; i++) {
        models[i] = (struct weir_sched_model_share){given->models[i].model,
                                                    share_of(&given->models[i].share)};
    }
    *out_models = models;
    *out_n_models = (int32_t)given->n_models;
}

weir_status queue_tree_put_shares(struct weir_sched_queue *row, const char *shares,
                                  struct weir_arena *arena, struct weir_error *err)
{
    struct weir_queue_shares given;
    WEIR_TRY(weir_queue_shares_read(shares, "$.shares", arena, &given, err));
    put_shares(arena, &given, row->shares, &row->models, &row->n_models);
    return WEIR_OK;
}

weir_status queue_tree_put_times(struct weir_sched_queue *row, const char *text,
                                 struct weir_arena *arena, struct weir_error *err)
{
    struct weir_queue_time *times;
    size_t n;
    WEIR_TRY(weir_queue_times_read(text, arena, &times, &n, err));
    struct weir_sched_timed_quota *timed =
        WEIR_ARENA_ARRAY(arena, n + 1, struct weir_sched_timed_quota);
    for (size_t i = 0; i < n; i++) {
        timed[i].days = times[i].days;
        timed[i].from_minute = times[i].from_min;
        timed[i].until_minute = times[i].until_min;
        put_shares(arena, &times[i].shares, timed[i].shares, &timed[i].models, &timed[i].n_models);
    }
    row->timed_quotas = timed;
    row->n_timed_quotas = (int32_t)n;
    return WEIR_OK;
}

static void put_where(struct queue_tree *tree, const struct weir_queue *queue)
{
    WEIR_AUTO(weir_json_auto_free)
    json_t *list = queue->clusters != NULL ? json_loads(queue->clusters, 0, NULL) : NULL;
    size_t n = json_array_size(list);
    const char **names = WEIR_ARENA_ARRAY(&tree->arena, n + 1, const char *);
    for (size_t i = 0; i < n; i++) {
        names[i] = weir_arena_strdup(&tree->arena, json_string_value(json_array_get(list, i)));
    }
    weir_xgrow(&tree->where, sizeof *tree->where, (size_t)tree->n_rows, &tree->where_cap);
    tree->where[tree->n_rows] = (struct queue_tree_where){names, n, queue->overflow_after_ms};
}

static weir_status put_queue(struct queue_tree *tree, const struct weir_queue *queue,
                             int32_t parent, struct weir_error *err)
{
    struct weir_sched_queue row = {.name = queue->name,
                                   .parent = parent,
                                   .priority = (int32_t)queue->priority,
                                   .preempt_min_run_ms = queue->min_run_ms,
                                   .reclaim_min_run_ms = queue->min_run_ms};
    WEIR_TRY(queue_tree_put_shares(&row, queue->shares, &tree->arena, err));
    WEIR_TRY(queue_tree_put_times(&row, queue->times, &tree->arena, err));
    tree->is_timed = tree->is_timed || row.n_timed_quotas > 0;
    if (queue->project != NULL) {
        put_project(tree, queue->project, tree->n_rows);
    }
    put_where(tree, queue);
    *add_row(tree) = row;
    return WEIR_OK;
}

static int32_t find_row(const struct queue_tree *tree, const char *name)
{
    for (int32_t i = 0; name != NULL && i < tree->n_rows; i++) {
        if (strcmp(tree->rows[i].name, name) == 0) {
            return i;
        }
    }
    return WEIR_SCHED_NONE;
}

/* Round by round those whose parent is there: the store has no loops. */
static weir_status put_queues(struct queue_tree *tree, struct weir_queue *queues, size_t n,
                              struct weir_error *err)
{
    size_t n_left = n;
    for (bool is_going = true; n_left > 0 && is_going;) {
        is_going = false;
        for (size_t i = 0; i < n; i++) {
            int32_t parent = find_row(tree, queues[i].parent);
            if (queues[i].name == NULL || (queues[i].parent != NULL && parent < 0)) {
                continue;
            }
            WEIR_TRY(put_queue(tree, &queues[i], parent, err));
            queues[i].name = NULL; /* Its row has it. */
            is_going = true;
            n_left--;
        }
    }
    return n_left == 0 ? WEIR_OK
                       : weir_error_set(err, WEIR_ERR_CORRUPT,
                                        "queues: %zu are parts of one that is not there", n_left);
}

static weir_status read_queues(struct queue_tree *tree, struct weir_txn *txn, bool *out_is_changed,
                               struct weir_error *err)
{
    struct weir_queue *queues;
    int64_t revision;
    size_t n;
    WEIR_TRY(weir_queue_revision(txn, &revision, err));
    if (revision == tree->revision) {
        return WEIR_OK;
    }
    tree->revision = -1;
    tree->n_rows = tree->n_set = 0;
    tree->n_projects = 0;
    tree->is_timed = false;
    weir_arena_fini(&tree->arena);
    weir_arena_init(&tree->arena, 0);
    WEIR_TRY(weir_queue_list(txn, &tree->arena, &queues, &n, err));
    WEIR_TRY(put_queues(tree, queues, n, err));
    tree->n_set = tree->n_rows;
    tree->revision = revision;
    *out_is_changed = true;
    return WEIR_OK;
}

/* Where it does not count, that it is another is no change to plan for. */
static weir_status read_past(struct queue_tree *tree, struct weir_txn *txn, bool *out_is_changed,
                             struct weir_error *err)
{
    int64_t revision;
    double weight = tree->past_rule.weight;
    WEIR_TRY(weir_past_use_revision(txn, &revision, err));
    if (revision == tree->past_revision) {
        return WEIR_OK;
    }
    tree->past_revision = -1;
    tree->n_past = 0;
    weir_arena_fini(&tree->past_arena);
    weir_arena_init(&tree->past_arena, 0);
    WEIR_TRY(weir_past_use_read(txn, &tree->past_arena, &tree->past_rule, &tree->past,
                                &tree->n_past, err));
    tree->past_revision = revision;
    *out_is_changed = *out_is_changed || weight > 0 || tree->past_rule.weight > 0;
    return WEIR_OK;
}

weir_status queue_tree_read(struct queue_tree *tree, struct weir_txn *txn, bool *out_is_changed,
                            struct weir_error *err)
{
    WEIR_TRY(read_past(tree, txn, out_is_changed, err));
    return read_queues(tree, txn, out_is_changed, err);
}
