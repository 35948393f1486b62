#include "cli/core/find.h"

#include "base/uuid.h"
#include "cli/core/noun.h"

#include <string.h>

#define WORD_MIN  4
#define SHORT_LEN 8
#define N_PAGES   50 /* of up to 1000 records are looked through */
#define N_NAMED   6

const struct find_kind find_job = {"job", "/api/v1/jobs?newest=1&limit=1000",
                                   "/api/v1/jobs?newest=1&limit=1&name={}", "name"},
                       find_run = {"run", "/api/v1/runs?limit=200", NULL, "name"},
                       find_alert = {"alert", "/api/v1/alerts?limit=1000", NULL, NULL},
                       find_silence = {"alert-silence",
                                       "/api/v1/alert-silences?newest=1&limit=1000", NULL, NULL},
                       find_delivery = {"alert-delivery",
                                        "/api/v1/alert-deliveries?newest=1&limit=1000", NULL, NULL},
                       find_token = {"token", "/api/v1/tokens?limit=1000", NULL, NULL},
                       find_session = {"session", "/api/v1/sessions?limit=1000", NULL, NULL},
                       find_sweep = {"sweep", "/api/v1/sweeps?newest=1&limit=1000",
                                     "/api/v1/sweeps?newest=1&limit=1&name={}", "name"},
                       find_service = {"service", "/api/v1/services?limit=1000",
                                       "/api/v1/services?limit=1&name={}", "name"};

const struct find_kind *find_kind_of(const char *noun)
{
    static const struct find_kind *const kinds[] = {&find_job,     &find_run,      &find_alert,
                                                    &find_silence, &find_delivery, &find_token,
                                                    &find_session, &find_sweep,    &find_service};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(kinds); i++) {
        if (strcmp(kinds[i]->noun, noun) == 0) {
            return kinds[i];
        }
    }
    return NULL;
}

const char *cli_short_id(const char *id)
{
    size_t len = strlen(id);
    return len > SHORT_LEN ? id + len - SHORT_LEN : id;
}

struct search {
    const struct find_kind *kind;
    const char *word;
    char *by_name;      /* newest of that name */
    char *ids[N_NAMED]; /* of those that begin or end so */
    const char *names[N_NAMED];
    size_t n;
};

static void look_at(struct cli_call *call, struct search *search, const json_t *item)
{
    const char *id = json_string_value(json_object_get(item, "id"));
    const char *name = search->kind->name_key != NULL
                           ? json_string_value(json_object_get(item, search->kind->name_key))
                           : NULL;
    size_t len = strlen(search->word), id_len = id != NULL ? strlen(id) : 0;
    if (id == NULL) {
        return;
    }
    if (name != NULL && search->by_name == NULL && strcmp(name, search->word) == 0) {
        search->by_name = weir_arena_strdup(call->arena, id);
    }
    if (len >= WORD_MIN && len <= id_len &&
        (strncmp(id, search->word, len) == 0 || strcmp(id + id_len - len, search->word) == 0)) {
        if (search->n < N_NAMED) {
            search->ids[search->n] = weir_arena_strdup(call->arena, id);
            search->names[search->n] = weir_arena_strdup(call->arena, name != NULL ? name : "");
        }
        search->n++;
    }
}

/* One page; *out_next is the path of the next one, NULL after the last. */
static weir_status look_at_page(struct cli_call *call, struct search *search, const char *path,
                                char **out_next, struct weir_error *err)
{
    json_t *answer, *item;
    size_t i;
    WEIR_TRY(cli_rest(call, "GET", path, NULL, &answer, err));
    json_array_foreach(json_object_get(answer, "items"), i, item)
    {
        look_at(call, search, item);
    }
    const char *next = json_string_value(json_object_get(answer, "next"));
    *out_next =
        next != NULL
            ? cli_path1(call, weir_arena_printf(call->arena, "%s&cursor={}", search->kind->list),
                        next)
            : NULL;
    json_decref(answer);
    return WEIR_OK;
}

static weir_status settle(struct cli_call *call, const struct search *search, char **out_id,
                          struct weir_error *err)
{
    const char *noun = search->kind->noun, *plural = cli_noun_find(noun)->plural;
    if (search->by_name != NULL || search->n == 1) {
        *out_id = search->by_name != NULL ? search->by_name : search->ids[0];
        return WEIR_OK;
    }
    if (search->n == 0) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "there is no %s \"%.60s\": give its %sidentifier or %d characters or "
                              "more of that one's start or end; `weir get %s` lists them",
                              noun, search->word,
                              search->kind->name_key != NULL ? "name, its " : "", WORD_MIN, plural);
    }
    char *all = weir_arena_strdup(call->arena, "");
    for (size_t i = 0; i < WEIR_MIN(search->n, (size_t)N_NAMED); i++) {
        all = weir_arena_printf(call->arena, "%s%s%s%s%s%s", all, i > 0 ? ", " : "", search->ids[i],
                                search->names[i][0] != '\0' ? " (" : "", search->names[i],
                                search->names[i][0] != '\0' ? ")" : "");
    }
    return weir_error_set(err, WEIR_ERR_INVALID, "\"%.60s\" may be %s %s%s: give more of one",
                          search->word, plural, all, search->n > N_NAMED ? " …" : "");
}

weir_status cli_find(struct cli_call *call, const struct find_kind *kind, const char *word,
                     char **out_id, struct weir_error *err)
{
    size_t noun_len = strlen(kind->noun);
    bool has_noun = strncmp(word, kind->noun, noun_len) == 0 && word[noun_len] == '/';
    word = has_noun ? word + noun_len + 1 : word; /* "job/train" */
    struct search search = {.kind = kind, .word = word};
    char *next;
    if (strlen(word) == WEIR_UUID_BYTES - 1 && word[8] == '-' && word[13] == '-') {
        *out_id = weir_arena_strdup(call->arena, word);
        return WEIR_OK;
    }
    if (kind->names != NULL) {
        WEIR_TRY(look_at_page(call, &search, cli_path1(call, kind->names, word), &next, err));
        if (search.by_name != NULL) {
            return settle(call, &search, out_id, err);
        }
    }
    char *path = weir_arena_strdup(call->arena, kind->list);
    for (int i = 0; i < N_PAGES && path != NULL && search.by_name == NULL; i++) {
        WEIR_TRY(look_at_page(call, &search, path, &path, err));
    }
    return settle(call, &search, out_id, err);
}
