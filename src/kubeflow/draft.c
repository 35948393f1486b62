#include "kubeflow/draft.h"

#include "base/names.h"
#include "base/record.h"

#include <stdlib.h>
#include <string.h>

#define KUEUE_QUEUE  "kueue.x-k8s.io/queue-name"
#define PRIORITY_MAX 1000

void kubeflow_draft_set(struct kubeflow_draft *draft, const char *name, int64_t value)
{
    json_object_set_new(draft->spec, name, json_integer(value));
}

/* ---- queue and priority --------------------------------------------------------------------------- */

weir_status kubeflow_draft_queue(struct kubeflow_reading *reading, struct kubeflow_draft *draft,
                                 struct kubeflow_place at)
{
    const char *queue = NULL;
    WEIR_TRY(kubeflow_text(reading, at, &queue));
    if (queue == NULL) {
        return WEIR_OK;
    }
    if (reading->given->project != NULL) {
        kubeflow_remark(reading, at, "--project says whose job it is, and so in which queue");
    } else if (reading->out->queue != NULL) {
        kubeflow_remark(reading, at, "the queue is %s, as %s says", reading->out->queue,
                        reading->out->queue_path);
    } else {
        reading->out->queue = weir_arena_strdup(reading->arena, queue);
        reading->out->queue_path = at.path;
        draft->project = NULL;
    }
    return WEIR_OK;
}

/* "80", or 80; -1: it is the name of a class. */
static int64_t priority_of(const json_t *value)
{
    const char *text = json_string_value(value);
    bool is_number = text != NULL && text[0] != '\0' && strlen(text) <= 4 &&
                     strspn(text, "0123456789") == strlen(text);
    int64_t priority = text == NULL ? json_integer_value(value)
                       : is_number  ? strtoll(text, NULL, 10)
                                    : -1;
    return priority >= 0 && priority <= PRIORITY_MAX ? priority : -1;
}

weir_status kubeflow_draft_priority(struct kubeflow_reading *reading, struct kubeflow_draft *draft,
                                    struct kubeflow_place at)
{
    int64_t priority = priority_of(at.value);
    if (!kubeflow_is_there(at)) {
        return WEIR_OK;
    }
    if (!json_is_string(at.value) && !json_is_integer(at.value)) {
        return kubeflow_wrong(reading, at, "a text");
    }
    if (priority >= 0 && draft->priority == priority) {
        kubeflow_mark(reading, at);
    } else if (draft->priority >= 0) {
        kubeflow_remark(reading, at, "the priority is %lld, as %s says", (long long)draft->priority,
                        draft->priority_path);
    } else if (priority < 0) {
        kubeflow_remark(reading, at,
                        "priorities are numbers from 0 to 1000, and 50 where nothing is said: the "
                        "annotation weir.dev/priority, or weir job priority");
    } else {
        kubeflow_mark(reading, at);
        draft->priority = priority;
        draft->priority_path = at.path;
    }
    return WEIR_OK;
}

/* ---- metadata ------------------------------------------------------------------------------------- */

struct metadata {
    struct kubeflow_place name, generate_name, namespace, labels, annotations;
};

#define OF_A_CLUSTER "is what a cluster wrote about it"

static const struct kubeflow_field metadata_fields[] = {
    KUBEFLOW_TAKEN(metadata, name, "name", TEXT),
    KUBEFLOW_TAKEN(metadata, generate_name, "generateName", TEXT),
    KUBEFLOW_TAKEN(metadata, namespace, "namespace", TEXT),
    KUBEFLOW_TAKEN(metadata, labels, "labels", OBJECT),
    KUBEFLOW_TAKEN(metadata, annotations, "annotations", OBJECT),
    KUBEFLOW_REMARK("uid", OF_A_CLUSTER),
    KUBEFLOW_REMARK("resourceVersion", OF_A_CLUSTER),
    KUBEFLOW_REMARK("generation", OF_A_CLUSTER),
    KUBEFLOW_REMARK("creationTimestamp", OF_A_CLUSTER),
    KUBEFLOW_REMARK("deletionTimestamp", OF_A_CLUSTER),
    KUBEFLOW_REMARK("deletionGracePeriodSeconds", OF_A_CLUSTER),
    KUBEFLOW_REMARK("managedFields", OF_A_CLUSTER),
    KUBEFLOW_REMARK("selfLink", OF_A_CLUSTER),
    KUBEFLOW_REMARK("finalizers", "nothing else waits for its end"),
    KUBEFLOW_REMARK("ownerReferences", "a job belongs to its project"),
};

static weir_status take_clusters(struct kubeflow_reading *reading, struct kubeflow_draft *draft,
                                 struct kubeflow_place at)
{
    const char *list = "";
    json_t *clusters = kubeflow_keep(reading, json_array());
    WEIR_TRY(kubeflow_text(reading, at, &list));
    for (const char *from = list; *from != '\0';) {
        size_t len = strcspn(from, ",");
        json_array_append_new(clusters, json_stringn(from, len));
        from += len + (from[len] == ',');
    }
    json_object_set(draft->spec, "clusters", clusters);
    return WEIR_OK;
}

static weir_status take_image(struct kubeflow_reading *reading, struct kubeflow_draft *draft,
                              struct kubeflow_place at)
{
    const char *image = NULL;
    WEIR_TRY(kubeflow_text(reading, at, &image));
    if (draft->image != NULL) {
        kubeflow_remark(reading, at, "--image says another");
    } else {
        draft->image = image;
    }
    return WEIR_OK;
}

static weir_status take_gpu_model(struct kubeflow_reading *reading, struct kubeflow_draft *draft,
                                  struct kubeflow_place at)
{
    draft->gpu_model_at = at;
    return kubeflow_text(reading, at, &draft->gpu_model);
}

/* Labels and annotations that say something of the job; of a job's own the first counts. */
static const struct mark {
    const char *name;
    weir_status (*take)(struct kubeflow_reading *reading, struct kubeflow_draft *draft,
                        struct kubeflow_place at);
} known_marks[] = {
    {"weir.dev/queue", kubeflow_draft_queue},
    {"weir.dev/priority", kubeflow_draft_priority},
    {"weir.dev/clusters", take_clusters},
    {"weir.dev/image", take_image},
    {"weir.dev/gpu-model", take_gpu_model},
    {KUEUE_QUEUE, kubeflow_draft_queue},
    {"kueue.x-k8s.io/priority-class", kubeflow_draft_priority},
};

static bool is_known(const char *name, struct weir_nearest *nearest)
{
    bool is_found = false;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(known_marks); i++) {
        is_found = is_found || strcmp(known_marks[i].name, name) == 0;
        weir_nearest_see(nearest, name, strlen(name), known_marks[i].name);
    }
    return is_found;
}

/* Jobs have no labels. */
static weir_status remark_others(struct kubeflow_reading *reading, struct kubeflow_place at)
{
    static const char own[] = "weir.dev/";
    const char *name;
    struct kubeflow_place item;
    for (void *it = NULL; kubeflow_next(reading, at, &it, &name, &item);) {
        struct weir_nearest nearest = {0};
        bool is_one = is_known(name, &nearest);
        if (!is_one && strncmp(name, own, sizeof own - 1) == 0) {
            return weir_error_set(reading->err, WEIR_ERR_INVALID, "%s: there is no such mark%s%s%s",
                                  item.path, nearest.name != NULL ? "; did you mean " : "",
                                  nearest.name != NULL ? nearest.name : "",
                                  nearest.name != NULL ? "?" : "");
        }
        if (!is_one) {
            kubeflow_remark(reading, item, "jobs have no labels and annotations");
        }
    }
    if (json_object_size(at.value) == 0) {
        kubeflow_mark(reading, at);
    }
    return WEIR_OK;
}

/* One of them, in the annotations or the labels. */
static weir_status take_mark(struct kubeflow_reading *reading, struct kubeflow_draft *draft,
                             const struct metadata *given, const struct mark *mark)
{
    const struct kubeflow_place maps[] = {given->annotations, given->labels};
    bool is_taken = false;
    for (size_t m = 0; m < WEIR_ARRAY_LEN(maps); m++) {
        if (json_object_get(maps[m].value, mark->name) == NULL) {
            continue;
        }
        struct kubeflow_place at = kubeflow_member(reading, maps[m], mark->name);
        if (is_taken) {
            return kubeflow_wrong(reading, at, "none beside the annotation of that name");
        }
        WEIR_TRY(mark->take(reading, draft, at));
        is_taken = true;
    }
    return WEIR_OK;
}

/* "pi-" of generateName is pi: names need not be a job's alone. */
static weir_status take_name(struct kubeflow_reading *reading, struct kubeflow_draft *draft,
                             struct kubeflow_place at, const struct metadata *given)
{
    const char *name = NULL, *stem = NULL;
    WEIR_TRY(kubeflow_text(reading, given->name, &name));
    WEIR_TRY(kubeflow_text(reading, given->generate_name, &stem));
    if (stem != NULL) {
        kubeflow_remark(reading, given->generate_name,
                        name != NULL ? "name counts" : "nothing is added: jobs may have one name");
        size_t len = strlen(stem);
        stem = weir_arena_memdup(reading->arena, stem, len - (len > 1 && stem[len - 1] == '-'));
    }
    draft->name = name != NULL ? name : stem;
    if (draft->name == NULL || !weir_name_is_valid(draft->name)) {
        struct kubeflow_place place = name != NULL ? given->name : given->generate_name;
        return kubeflow_wrong(reading,
                              place.value != NULL ? place : kubeflow_member(reading, at, "name"),
                              "a name: 1 to 63 of a-z 0-9 . _ - with a letter or digit first");
    }
    return WEIR_OK;
}

weir_status kubeflow_draft_metadata(struct kubeflow_reading *reading, struct kubeflow_draft *draft,
                                    struct kubeflow_place at)
{
    struct metadata given = {0};
    const char *namespace = NULL;
    WEIR_TRY(
        kubeflow_fields(reading, at, metadata_fields, WEIR_ARRAY_LEN(metadata_fields), &given));
    WEIR_TRY(take_name(reading, draft, at, &given));
    WEIR_TRY(kubeflow_text(reading, given.namespace, &namespace));
    draft->project = reading->given->project != NULL ? reading->given->project : namespace;
    draft->namespace = given.namespace;
    draft->is_kueued = json_object_get(given.labels.value, KUEUE_QUEUE) != NULL;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(known_marks); i++) {
        WEIR_TRY(take_mark(reading, draft, &given, &known_marks[i]));
    }
    WEIR_TRY(remark_others(reading, given.annotations));
    WEIR_TRY(remark_others(reading, given.labels));
    reading->name = draft->name;
    reading->namespace = draft->project != NULL ? draft->project : "default";
    return WEIR_OK;
}

static void settle_project(struct kubeflow_reading *reading, const struct kubeflow_draft *draft)
{
    struct kubeflow_place at = draft->namespace;
    if (!kubeflow_is_there(at)) {
        return;
    }
    if (reading->given->project != NULL) {
        kubeflow_remark(reading, at, "the project is %s, as --project says",
                        reading->given->project);
    } else if (reading->out->queue != NULL) {
        kubeflow_remark(reading, at, "the project is that of the queue %s", reading->out->queue);
    } else {
        kubeflow_remark(reading, at, "is taken as the project: --project NAME says another");
    }
}

void kubeflow_draft_settle(struct kubeflow_reading *reading, const struct kubeflow_draft *draft)
{
    const json_t *resources = json_object_get(draft->spec, "resources");
    if (draft->gpu_model != NULL && json_object_get(resources, "accelerator_model") == NULL) {
        kubeflow_remark(reading, draft->gpu_model_at, "no task asks for accelerators");
    }
    settle_project(reading, draft);
}
