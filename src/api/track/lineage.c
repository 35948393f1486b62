/** Lineage, both ways, as routes: control/lineage.h finds it. */
#include "api/track/lineage.h"

#include "api/core/answer.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/model/model.h"
#include "control/lineage.h"
#include "store/rights.h"

static const enum weir_right needed[] = {WEIR_RIGHT_DATASETS_READ,  WEIR_RIGHT_RUNS_READ,
                                         WEIR_RIGHT_MODELS_READ,    WEIR_RIGHT_IONS_READ,
                                         WEIR_RIGHT_DECISIONS_READ, WEIR_RIGHT_HEALTH_READ};

/* What both see. */
static struct weir_row_scope both(const struct api_call *call, const struct weir_row_scope *a,
                                  const struct weir_row_scope *b)
{
    if (a->is_all || b->is_all) {
        return a->is_all ? *b : *a;
    }
    struct weir_row_scope scope = {0};
    const char **projects = WEIR_ARENA_ARRAY(call->arena, a->n_projects + 1, const char *);
    for (size_t i = 0; i < a->n_projects; i++) {
        if (weir_row_scope_sees(b, a->projects[i])) {
            projects[scope.n_projects++] = a->projects[i];
        }
    }
    scope.projects = projects;
    return scope;
}

weir_status api_lineage_read(struct api_call *call, weir_txn_fn fn, void *context,
                             struct weir_error *err)
{
    struct weir_row_scope scope = call->rows;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(needed); i++) {
        const struct weir_row_scope one = api_projects_with(call, needed[i]);
        scope = both(call, &scope, &one);
        if (!scope.is_all && scope.n_projects == 0) {
            return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                                  "\"%.60s\" is not there for you: its lineage needs the right to "
                                  "%s %s too, in the same project; ask who administers it",
                                  call->params[0], weir_right_verb(needed[i]),
                                  weir_right_noun(needed[i]));
        }
    }
    return weir_store_read_scoped(call->api->store, &scope, fn, context, err);
}

/* ---- routes ---------------------------------------------------------------------------------- */

typedef weir_status (*find_fn)(struct weir_txn *txn, const char *name, int64_t version,
                               struct weir_arena *arena, json_t **out, struct weir_error *err);
typedef weir_status (*page_fn)(struct weir_txn *txn, const char *name, int64_t version,
                               struct weir_arena *arena, struct control_lineage_page *page,
                               struct weir_error *err);

/** A question about a version, and its answer. */
struct asked {
    struct api_call *call;
    int64_t version;
    find_fn find;
    page_fn page_of;
    struct control_lineage_page page;
    json_t *view;
};

static weir_status decision_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct asked *asked = context;
    return control_lineage_decision(txn, asked->call->params[0], asked->call->arena, &asked->view,
                                    err);
}

static weir_status find_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct asked *asked = context;
    return asked->find(txn, asked->call->params[0], asked->version, asked->call->arena,
                       &asked->view, err);
}

static weir_status page_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct asked *asked = context;
    return asked->page_of(txn, asked->call->params[0], asked->version, asked->call->arena,
                          &asked->page, err);
}

weir_status api_decision_lineage(struct api_call *call, struct weir_txn *txn,
                                 struct weir_error *err)
{
    struct asked asked = {.call = call};
    (void)txn;
    WEIR_TRY(api_lineage_read(call, decision_in, &asked, err));
    api_answer(call, asked.view);
    return WEIR_OK;
}

static weir_status answer_lineage(struct api_call *call, find_fn find, struct weir_error *err)
{
    struct asked asked = {.call = call, .find = find};
    WEIR_TRY(api_read_version(call->params[1], &asked.version, err));
    WEIR_TRY(api_lineage_read(call, find_in, &asked, err));
    api_answer(call, asked.view);
    return WEIR_OK;
}

static weir_status answer_page(struct api_call *call, page_fn page_of, struct weir_error *err)
{
    struct asked asked = {
        .call = call, .page_of = page_of, .page.cursor = api_query_text(call, "cursor")};
    WEIR_TRY(api_read_version(call->params[1], &asked.version, err));
    asked.page.limit = (size_t)api_query_int(call, "limit");
    WEIR_TRY(api_lineage_read(call, page_in, &asked, err));
    api_answer_list(call, &weir_decision_resource, asked.page.items, asked.page.n, asked.page.next);
    return WEIR_OK;
}

weir_status api_version_lineage(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    (void)txn;
    return answer_lineage(call, control_lineage_version, err);
}

weir_status api_dataset_lineage(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    (void)txn;
    return answer_lineage(call, control_lineage_dataset, err);
}

weir_status api_version_decisions(struct api_call *call, struct weir_txn *txn,
                                  struct weir_error *err)
{
    (void)txn;
    return answer_page(call, control_lineage_version_decisions, err);
}

weir_status api_dataset_decisions(struct api_call *call, struct weir_txn *txn,
                                  struct weir_error *err)
{
    (void)txn;
    return answer_page(call, control_lineage_dataset_decisions, err);
}
