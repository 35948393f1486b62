#include "endpoint/door/webhook.h"

#include "base/clock.h"
#include "http/post.h"
#include "predict/door.h"

#include <stdlib.h>
#include <string.h>

struct door {
    const struct weir_door_webhook *options;
    struct weir_poster *poster;
};

static weir_status open_poster(const struct door_config *config, struct door **out,
                               struct weir_error *err)
{
    struct weir_poster *poster;
    WEIR_TRY(weir_poster_open(&poster, err));
    *out = weir_xalloc(sizeof **out);
    **out = (struct door){config->options, poster};
    return WEIR_OK;
}

static char *body_of(const struct door_command *command, struct weir_arena *arena)
{
    char time[WEIR_TIME_TEXT_BYTES];
    weir_time_format(command->now_ms, time);
    return weir_arena_printf(arena, "{\"type\":\"door.command\",\"timestamp\":\"%s\",\"data\":%s}",
                             time, command->text);
}

/* 2xx without a body that says more is done; what it refuses it would refuse again. */
static weir_status judge(weir_status status, const struct weir_post_answer *posted,
                         struct door_answer *answer, struct weir_error *err)
{
    char id[64];
    struct weir_error ignored;
    bool is_refused = status == WEIR_ERR_INVALID && posted->http_status >= 400;
    if (status != WEIR_OK && !is_refused) {
        return status;
    }
    if (door_answer_read(posted->said, strlen(posted->said), answer, id, &ignored) != WEIR_OK) {
        *answer = (struct door_answer){.word = is_refused ? DOOR_REFUSED : DOOR_DONE};
        (void)snprintf(answer->said, sizeof answer->said, "%.*s", DOOR_SAID_BYTES - 1,
                       is_refused ? err->message : "");
    }
    return WEIR_OK;
}

static weir_status send_command(struct door *door, const struct door_command *command,
                                int64_t timeout_ms, struct door_answer *answer,
                                struct weir_error *err)
{
    struct weir_arena arena;
    struct weir_post_answer posted;
    weir_arena_init(&arena, 0);
    const struct weir_post post = {.url = door->options->url,
                                   .ca_file = door->options->ca_file,
                                   .token = door->options->token,
                                   .secret = door->options->secret,
                                   .id = command->id,
                                   .is_standard = true,
                                   .body = body_of(command, &arena),
                                   .now_ms = command->now_ms,
                                   .timeout_ms = timeout_ms};
    weir_status status = weir_poster_post(door->poster, &post, &arena, &posted, err);
    weir_arena_fini(&arena);
    return judge(status, &posted, answer, err);
}

static void cancel(struct door *door)
{
    weir_poster_stop(door->poster);
}

static void close_poster(struct door *door)
{
    weir_poster_close(door->poster);
    free(door);
}

const struct door_ops door_webhook = {
    .open = open_poster, .send = send_command, .cancel = cancel, .close = close_poster};
