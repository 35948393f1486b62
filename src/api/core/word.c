#include "api/core/word.h"

#include "base/names.h"
#include "framework/framework.h"
#include "ion/decision.h"
#include "ion/ion.h"
#include "ion/order.h"
#include "job/cluster.h"
#include "job/device.h"
#include "job/job.h"
#include "job/service.h"
#include "notify/notify.h"
#include "store/alert_kind.h"
#include "store/event.h"
#include "store/identity.h"
#include "sweep/sweep.h"
#include "track/track.h"

#include <string.h>
#include <strings.h>

/* Of kinds that have a table of their own. */
static const char *job_kinds(struct weir_arena *arena)
{
    const char *text = "";
    for (size_t i = 0; i < weir_job_kinds.n_kinds; i++) {
        text = weir_arena_printf(arena, "%s%s%s", text, i > 0 ? " " : "",
                                 weir_job_kinds.kinds[i]->name);
    }
    return text;
}

static const char *alert_kinds(struct weir_arena *arena)
{
    size_t n;
    const char *text = "";
    const struct weir_alert_kind *kinds = weir_alert_kinds(&n);
    for (size_t i = 0; i < n; i++) {
        text = weir_arena_printf(arena, "%s%s%s", text, i > 0 ? " " : "", kinds[i].kind);
    }
    return text;
}

// clang-format off
static const struct {
    const struct weir_resource *resource;
    const char *field;
    const char *words;
    const char *(*list)(struct weir_arena *arena); /* where `words` is NULL */
} enumerations[] = {
    {&weir_job_resource,            "state",    "PENDING STARTING RUNNING RESTARTING STOPPING SUCCEEDED FAILED CANCELLED", NULL},
    {&weir_job_resource,            "kind",     NULL, job_kinds},
    {&weir_run_resource,            "status",   "RUNNING SCHEDULED FINISHED FAILED KILLED", NULL},
    {&weir_sweep_resource,          "state",    "RUNNING PAUSED STOPPING SUCCEEDED FAILED CANCELLED", NULL},
    {&weir_cluster_resource,        "state",    "new ready wrong silent", NULL},
    {&weir_allocation_resource,     "state",    "wanted pending running releasing ended", NULL},
    {&weir_device_resource,         "kind",     "cpu memory disk nic gpu mig declared", NULL},
    {&weir_device_resource,         "state",    "ok bad gone", NULL},
    {&weir_decision_resource,       "verdict",  "grant deny unknown error label", NULL},
    {&weir_door_order_resource,     "state",    WEIR_ORDER_STATES, NULL},
    {&weir_event_resource,          "severity", "info warning error", NULL},
    {&weir_alert_resource,          "state",    "open acknowledged resolved", NULL},
    {&weir_alert_resource,          "severity", "info warning critical", NULL},
    {&weir_alert_resource,          "kind",     NULL, alert_kinds},
    {&weir_alert_delivery_resource, "state",    "pending sent dead", NULL},
    {&weir_alert_delivery_resource, "event",    "raised escalated repeated resolved test", NULL},
    {&weir_user_resource,           "kind",     "person service", NULL},
    {&weir_dataset_resource,        "kind",     "folder idx", NULL},
    {&weir_service_resource,        "kind",     "service notebook tensorboard", NULL},
};

// clang-format on

const char *api_words_of(const struct weir_resource *resource, const char *field,
                         struct weir_arena *arena)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(enumerations); i++) {
        if (enumerations[i].resource == resource && strcmp(enumerations[i].field, field) == 0) {
            return enumerations[i].words != NULL ? enumerations[i].words
                                                 : enumerations[i].list(arena);
        }
    }
    return NULL;
}

weir_status api_word_among(const char *what, const char *words, const char *value,
                           struct weir_arena *arena, const char **out, struct weir_error *err)
{
    struct weir_names names = {0};
    struct weir_nearest nearest = {0};
    char *copy = weir_arena_strdup(arena, words), *word;
    while ((word = strsep(&copy, " ")) != NULL) {
        if (strcasecmp(word, value) == 0) {
            *out = word;
            return WEIR_OK;
        }
        weir_names_add(&names, word, strlen(word));
        /* Capitals are no difference. */
        char *near = weir_arena_strdup(arena, value);
        for (size_t i = 0; near[i] != '\0' && word[0] >= 'A' && word[0] <= 'Z'; i++) {
            near[i] = (char)(near[i] >= 'a' && near[i] <= 'z' ? near[i] - 'a' + 'A' : near[i]);
        }
        weir_nearest_see(&nearest, near, strlen(near), word);
    }
    return weir_error_set(err, WEIR_ERR_INVALID, "%s: \"%.60s\" is none of %s%s%s%s", what, value,
                          names.text, nearest.name != NULL ? "; did you mean " : "",
                          nearest.name != NULL ? nearest.name : "",
                          nearest.name != NULL ? "?" : "");
}

weir_status api_word_read(const struct weir_resource *resource, const char *field,
                          const char *value, struct weir_arena *arena, const char **out,
                          struct weir_error *err)
{
    const char *words = api_words_of(resource, field, arena);
    *out = value;
    return words != NULL ? api_word_among(field, words, value, arena, out, err) : WEIR_OK;
}
