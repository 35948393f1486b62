/* Nothing of a document vanishes. Random documents are made of all fields that there are; each value of one is then changed,
 * alone: what comes of the document is another then, or it is refused, or a remark names that value or what it stands in. */
#include "kubeflow/kind.h"

#include "base/macros.h"
#include "base/test_main.h"
#include "base/test_seed.h"

#include <string.h>

static struct weir_arena arena;
static struct weir_rng rng;

static const char *const pieces[] = {
#include "kubeflow/law_pieces.def"
};

/* ---- random documents ----------------------------------------------------------------------------- */

/* Text with each <A|B|…> being one of its words, perhaps with others in them; "" is one, too. */
static char *fill(const char *text)
{
    char *out = weir_arena_strdup(&arena, text);
    for (char *open; (open = strrchr(out, '<')) != NULL;) {
        char *close = strchr(open, '>'), *at = open + 1, *words[32];
        size_t n = 0;
        ck_assert_ptr_nonnull(close);
        *open = *close = '\0';
        for (char *bar; n < 31 && (bar = strchr(at, '|')) != NULL; at = bar + 1) {
            *bar = '\0';
            words[n++] = at;
        }
        words[n++] = at;
        out = weir_arena_printf(&arena, "%s%s%s", out, words[weir_rng_below(&rng, n)], close + 1);
    }
    return out;
}

/* What is left out where a piece chose nothing: {"a":1,,"b":2,} has two members. */
static char *tidy(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0'; from++) {
        char before = to > text ? to[-1] : '{';
        bool is_needless = (*from == ',' && strchr("{[,", before) != NULL);
        if (strchr("}]", *from) != NULL && before == ',') {
            to--;
        }
        if (!is_needless) {
            *to++ = *from;
        }
    }
    *to = '\0';
    return text;
}

/* $NAME is a piece of that name: "NAME text". */
static char *compose(const char *name)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(pieces); i++) {
        size_t len = strcspn(pieces[i], " ");
        if (strlen(name) != len || strncmp(pieces[i], name, len) != 0) {
            continue;
        }
        char *out = "", *text = fill(pieces[i] + len + 1);
        for (char *mark; (mark = strchr(text, '@')) != NULL;) {
            size_t n = strspn(mark + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
            out = weir_arena_printf(&arena, "%s%.*s%s", out, (int)(mark - text), text,
                                    compose(weir_arena_memdup(&arena, mark + 1, n)));
            text = mark + 1 + n;
        }
        return weir_arena_printf(&arena, "%s%s", out, text);
    }
    ck_abort_msg("there is no piece %s", name);
}

/* ---- what comes of one ---------------------------------------------------------------------------- */

struct outcome {
    weir_status status;
    char *text; /* the job and its queue; or the error */
    struct weir_kubeflow job;
};

static struct outcome read_document(const json_t *document)
{
    static const char config_map[] =
        "[{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"m\"},"
        "\"data\":{\"k\":\"v\"}}]";
    struct outcome outcome = {0};
    struct weir_error err;
    json_t *maps = json_loads(config_map, 0, NULL);
    const struct weir_kubeflow_given given = {.config_maps = maps};
    outcome.status = weir_kubeflow_read(document, &given, &arena, &outcome.job, &err);
    outcome.text =
        outcome.status == WEIR_OK
            ? weir_arena_printf(&arena, "%s %s", weir_json_text(outcome.job.body, &arena),
                                outcome.job.queue != NULL ? outcome.job.queue : "")
            : weir_arena_strdup(&arena, err.message);
    weir_kubeflow_fini(&outcome.job);
    json_decref(maps);
    return outcome;
}

/* A remark about the value, or about what it stands in. Of a role of replicas something is said beside what its parts are
 * read for. */
static bool is_remarked(const struct weir_kubeflow *job, const char *path)
{
    static const char *const roles[] = {"Master", "Chief", "PS", "Worker"};
    for (size_t i = 0; i < job->n_remarks; i++) {
        const struct weir_kubeflow_remark *remark = &job->remarks[i];
        size_t len = strlen(remark->path);
        const char *last = strrchr(remark->path, '.');
        bool is_beside = false;
        for (size_t r = 0; r < WEIR_ARRAY_LEN(roles) && last != NULL; r++) {
            is_beside = is_beside || (strcmp(last + 1, roles[r]) == 0 &&
                                      strcmp(remark->say, "has no replicas") != 0);
        }
        if (!is_beside && strncmp(path, remark->path, len) == 0 &&
            strchr(".[", path[len]) != NULL) {
            return true; /* strchr finds the end, too */
        }
    }
    return false;
}

/* The name of the only container; and whether a ConfigMap that is there has to be. */
static bool says_nothing(const char *path)
{
    static const char *const ends[] = {"containers[0].name", ".containerName", ".optional"};
    size_t len = strlen(path);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(ends); i++) {
        size_t n = strlen(ends[i]);
        if (len > n && strcmp(path + len - n, ends[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- one value changed ---------------------------------------------------------------------------- */

/* Values that another may be in place of: none is the one. */
static json_t *changed(const json_t *value)
{
    return json_is_string(value)    ? json_sprintf("%sx", json_string_value(value))
           : json_is_integer(value) ? json_integer(json_integer_value(value) + 1)
           : json_is_boolean(value) ? json_boolean(!json_is_true(value))
           : json_is_real(value)    ? json_real(json_real_value(value) + 0.5)
                                    : json_string("x");
}

struct walk {
    json_t *document;
    const struct outcome *whole;
    size_t n_leaves, n_taken, n_remarked, n_refused;
};

static void try_leaf(struct walk *walk, const char *path)
{
    struct outcome other = read_document(walk->document);
    bool is_taken = other.status == WEIR_OK && strcmp(other.text, walk->whole->text) != 0;
    bool was_remarked = is_remarked(&walk->whole->job, path) || is_remarked(&other.job, path);
    walk->n_leaves++;
    walk->n_refused += other.status != WEIR_OK;
    walk->n_taken += is_taken;
    walk->n_remarked += was_remarked;
    ck_assert_msg(other.status != WEIR_OK || is_taken || was_remarked || says_nothing(path),
                  "%s vanishes in %s", path, weir_json_text(walk->document, &arena));
}

static void walk_value(struct walk *walk, json_t *value, const char *path);

/* The member of an object, or the item of a list. */
static void walk_child(struct walk *walk, json_t *parent, const char *name, size_t i,
                       const char *path)
{
    json_t *child = name != NULL ? json_object_get(parent, name) : json_array_get(parent, i);
    if (json_object_size(child) + json_array_size(child) > 0) {
        walk_value(walk, child, path);
        return;
    }
    json_t *own = json_incref(child), *other = changed(child);
    name != NULL ? json_object_set_new(parent, name, other) : json_array_set_new(parent, i, other);
    try_leaf(walk, path);
    name != NULL ? json_object_set_new(parent, name, own) : json_array_set_new(parent, i, own);
}

static void walk_value(struct walk *walk, json_t *value, const char *path)
{
    struct kubeflow_reading reading = {.arena = &arena};
    const struct kubeflow_place at = {.value = value, .path = path};
    const char *name;
    struct kubeflow_place inner;
    json_t *names = json_array();
    for (void *it = NULL; kubeflow_next(&reading, at, &it, &name, &inner);) {
        json_array_append_new(names, json_string(name));
    }
    for (size_t i = 0; i < json_array_size(names); i++) {
        name = json_string_value(json_array_get(names, i));
        walk_child(walk, value, name, 0, kubeflow_member(&reading, at, name).path);
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        walk_child(walk, value, NULL, i, kubeflow_item(&reading, at, i).path);
    }
    json_decref(names);
}

START_TEST(no_value_of_a_document_vanishes)
{
    size_t n_documents = 0;
    struct walk all = {0};
    (void)test_seed(&rng);
    for (int round = 0; round < WEIR_TEST_TIMES(300, 40); round++) {
        json_error_t error;
        weir_arena_init(&arena, 0);
        char *text = tidy(compose("DOCUMENT"));
        struct walk walk = {.document = json_loads(text, 0, &error)};
        ck_assert_msg(walk.document != NULL, "%s\n%s", error.text, text);
        struct outcome whole = read_document(walk.document);
        walk.whole = &whole;
        ck_assert_msg(whole.status != WEIR_OK || whole.text[0] == '{', "%s", whole.text);
        if (whole.status == WEIR_OK) {
            walk_value(&walk, walk.document, "$");
            n_documents++;
        } else {
            ck_assert_msg(whole.text[0] == '$' && strstr(whole.text, ": ") != NULL, "%s",
                          whole.text);
        }
        all.n_leaves += walk.n_leaves;
        all.n_taken += walk.n_taken;
        all.n_remarked += walk.n_remarked;
        all.n_refused += walk.n_refused;
        json_decref(walk.document);
        weir_arena_fini(&arena);
    }
    printf("%zu documents, %zu values: %zu change the job, %zu are remarked on, %zu are refused\n",
           n_documents, all.n_leaves, all.n_taken, all.n_remarked, all.n_refused);
    ck_assert_uint_gt(n_documents, WEIR_TEST_TIMES(60, 5));
}

END_TEST

WEIR_TEST_MAIN("law", no_value_of_a_document_vanishes)
