#include "endpoint/sink/webhook.h"

#include "base/clock.h"
#include "http/post.h"
#include "predict/sink.h"

#include <stdlib.h>

#define TIMEOUT_MS 15000

struct sink {
    const struct weir_sink_webhook *options;
    const struct predict_spec *spec;
    struct weir_poster *poster;
};

/* What is wrong with the decisions is one thing; that it does not let us in, or is not there, can change. */
static bool is_refusal(int http_status)
{
    return http_status == 400 || http_status == 413 || http_status == 422;
}

static weir_status post_batch(struct sink *sink, json_t *decisions, struct weir_arena *arena,
                              struct weir_post_answer *answer, struct weir_error *err)
{
    const char *id = json_string_value(json_object_get(json_array_get(decisions, 0), "id"));
    WEIR_AUTO(weir_json_auto_free)
    json_t *body =
        json_pack("{s:s,s:s,s:s,s:O}", "ion", sink->spec->ion, "pipeline", sink->spec->pipeline,
                  "replica", sink->spec->host.replica, "decisions", decisions);
    const struct weir_post post = {
        .url = sink->options->url,
        .ca_file = sink->options->ca_file,
        .token = sink->options->token,
        .secret = sink->options->secret,
        .id = weir_arena_printf(arena, "%s:%zu", id != NULL ? id : "", json_array_size(decisions)),
        .body = weir_json_text(body, arena),
        .now_ms = weir_time_ms(),
        .timeout_ms = TIMEOUT_MS};
    return weir_poster_post(sink->poster, &post, arena, answer, err);
}

static weir_status deliver(struct sink *sink, json_t *decisions, struct sink_outcome *outcome,
                           struct weir_error *err)
{
    struct weir_arena arena;
    struct weir_post_answer answer;
    weir_arena_init(&arena, 0);
    weir_status status = post_batch(sink, decisions, &arena, &answer, err);
    weir_arena_fini(&arena);
    outcome->retry_ms = answer.retry_ms;
    return status == WEIR_ERR_INVALID && !is_refusal(answer.http_status) ? WEIR_ERR_UNAVAILABLE
                                                                         : status;
}

static weir_status open_poster(const struct sink_config *config, struct sink **out,
                               struct weir_error *err)
{
    struct weir_poster *poster;
    WEIR_TRY(weir_poster_open(&poster, err));
    *out = weir_xalloc(sizeof **out);
    **out = (struct sink){config->options, config->spec, poster};
    return WEIR_OK;
}

static void cancel(struct sink *sink)
{
    weir_poster_stop(sink->poster);
}

static void close_poster(struct sink *sink)
{
    weir_poster_close(sink->poster);
    free(sink);
}

static const char *url_of(const void *options)
{
    return ((const struct weir_sink_webhook *)options)->url;
}

const struct sink_ops sink_webhook = {.open = open_poster,
                                      .deliver = deliver,
                                      .cancel = cancel,
                                      .close = close_poster,
                                      .identity = url_of,
                                      .waits_event = "webhook_waits"};
