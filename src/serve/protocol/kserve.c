/* What KServe's v1 protocol has beside TensorFlow Serving's: a list of models, and explanations. */
#include "serve/protocol/rows.h"

#include <string.h>

static weir_status answer_models(const struct protocol_request *request,
                                 const struct protocol_state *state, struct protocol_answer *answer,
                                 struct weir_error *err)
{
    const struct versions_view *view = state->view;
    struct weir_buf *out = &answer->body;
    (void)request;
    (void)err;
    (void)weir_buf_puts(out, "{\"models\":[");
    for (size_t i = 0; i < view->n; i++) {
        const char *model = view->rows[i].model;
        if (i == 0 || strcmp(view->rows[i - 1].model, model) != 0) {
            (void)weir_buf_puts(out, i > 0 ? "," : "");
            json_put_text(out, model, strlen(model));
        }
    }
    (void)weir_buf_puts(out, "]}");
    return WEIR_OK;
}

static const struct protocol_route routes[] = {
    {.method = "GET", .pattern = "/v1/models", .answer = answer_models},
    {.method = "POST",
     .pattern = "/v1/models/{model}:explain",
     .lacks = "explanations are not supported"},
};

const struct protocol protocol_kserve = {
    .name = "kserve",
    .doc = "KServe's v1 protocol: the list of models; predictions are as TensorFlow Serving's.",
    .routes = routes,
    .n_routes = WEIR_ARRAY_LEN(routes),
    .error = protocol_error_text,
};
