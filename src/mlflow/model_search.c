/** Searches for registered models and model versions. */
#include "mlflow/registry.h"

#include "track/model_search.h"

#include <string.h>

#define PROMPT_TAG       "mlflow.prompt.is_prompt"
#define MODELS_DEFAULT   100
#define MODELS_MAX       1000
#define VERSIONS_DEFAULT 10000
#define VERSIONS_MAX     200000

/* Clients ask for models that are no prompts by "tag.`mlflow.prompt.is_prompt` != 'true'", and mean those
 * without the tag, too, which a comparison with a tag never finds: it becomes NOT (… = 'true'). */
static void let_untagged_in(struct weir_search_node *node, struct weir_arena *arena)
{
    if (node == NULL) {
        return;
    }
    if (node->kind != WEIR_SEARCH_COMPARE) {
        let_untagged_in(node->left, arena);
        let_untagged_in(node->right, arena);
    } else if (node->entity == WEIR_SEARCH_TAG && node->op == WEIR_SEARCH_NE &&
               strcmp(node->key, PROMPT_TAG) == 0) {
        struct weir_search_node *equal = WEIR_ARENA_NEW(arena, struct weir_search_node);
        *equal = *node;
        equal->op = WEIR_SEARCH_EQ;
        *node = (struct weir_search_node){.kind = WEIR_SEARCH_NOT, .left = equal};
    }
}

static weir_status read_search(const struct weir_mlflow_call *call,
                               const struct weir_search_noun *noun, int64_t fallback, int64_t most,
                               struct weir_model_search *out, struct weir_error *err)
{
    struct weir_search_node *filter;
    struct weir_search_order *orders;
    int64_t limit;
    WEIR_TRY(mlflow_max_results(call, fallback, most, &limit, err));
    WEIR_TRY(mlflow_read_filter(call, noun, &filter, err));
    WEIR_TRY(mlflow_read_orders(call, noun, &orders, &out->n_orders, err));
    WEIR_TRY(mlflow_read_cursor(call, &out->cursor, err));
    let_untagged_in(filter, call->arena);
    out->filter = filter;
    out->orders = orders;
    out->limit = (size_t)limit;
    return WEIR_OK;
}

static weir_status answer(struct weir_mlflow_call *call, weir_status status, struct weir_buf *buf,
                          const char *next)
{
    if (status != WEIR_OK) {
        weir_buf_fini(buf);
        return status;
    }
    (void)weir_buf_puts(buf, "]");
    mlflow_put_member(buf, "next_page_token", next);
    (void)weir_buf_puts(buf, "}");
    mlflow_answer_buf(call, buf);
    return WEIR_OK;
}

weir_status mlflow_model_search(struct weir_mlflow_call *call, struct weir_txn *txn,
                                struct weir_error *err)
{
    struct weir_model_search search = {0};
    struct weir_model *found;
    struct weir_buf buf;
    size_t n;
    char *next;
    WEIR_TRY(read_search(call, &weir_model_noun, MODELS_DEFAULT, MODELS_MAX, &search, err));
    WEIR_TRY(weir_model_search(txn, &search, call->arena, &found, &n, &next, err));
    weir_buf_init(&buf, MLFLOW_ANSWER_MAX_BYTES);
    (void)weir_buf_puts(&buf, "{\"registered_models\":[");
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < n && status == WEIR_OK; i++) {
        (void)weir_buf_puts(&buf, i > 0 ? "," : "");
        status = mlflow_put_model(call, txn, &buf, &found[i], err);
    }
    return answer(call, status, &buf, next);
}

weir_status mlflow_version_search(struct weir_mlflow_call *call, struct weir_txn *txn,
                                  struct weir_error *err)
{
    struct weir_model_search search = {0};
    struct weir_model_version *found;
    struct weir_buf buf;
    size_t n;
    char *next;
    WEIR_TRY(read_search(call, &weir_version_noun, VERSIONS_DEFAULT, VERSIONS_MAX, &search, err));
    WEIR_TRY(weir_version_search(txn, &search, call->arena, &found, &n, &next, err));
    weir_buf_init(&buf, MLFLOW_ANSWER_MAX_BYTES);
    (void)weir_buf_puts(&buf, "{\"model_versions\":[");
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < n && status == WEIR_OK; i++) {
        (void)weir_buf_puts(&buf, i > 0 ? "," : "");
        status = mlflow_put_version(call, txn, &buf, &found[i], err);
    }
    return answer(call, status, &buf, next);
}
