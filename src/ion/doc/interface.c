#include "ion/interface.h"

#include "base/json.h"
#include "base/sha256.h"

#include <string.h>

#define CHANGES_SHOWN 4

/* ---- of a signature ------------------------------------------------------------------------------ */

static json_t *ports_of(const json_t *list)
{
    json_t *ports = json_array();
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *port = json_array_get(list, i);
        json_array_append_new(ports,
                              json_pack("{s:O?,s:O?,s:O?}", "name", json_object_get(port, "name"),
                                        "datatype", json_object_get(port, "datatype"), "shape",
                                        json_object_get(port, "shape")));
    }
    return ports;
}

/* Many labels become {"n", "sha256"}. */
static json_t *labels_of(const json_t *labels, struct weir_arena *arena)
{
    if (json_array_size(labels) <= WEIR_INTERFACE_LABELS_MAX) {
        return json_is_array(labels) || json_is_object(labels) ? json_incref((json_t *)labels)
                                                               : json_null();
    }
    char sum[WEIR_SHA256_TEXT_BYTES];
    struct weir_sha256_stream hash;
    char *text = weir_json_text(labels, arena);
    weir_sha256_begin(&hash);
    weir_sha256_add(&hash, text, strlen(text));
    weir_sha256_end(&hash, sum);
    return json_pack("{s:I,s:s}", "n", (json_int_t)json_array_size(labels), "sha256", sum);
}

static json_t *interface_of(const char *text, struct weir_arena *arena)
{
    json_t *signature = text != NULL ? json_loads(text, 0, NULL) : NULL;
    json_t *interface = NULL;
    if (json_is_array(json_object_get(signature, "inputs")) &&
        json_is_array(json_object_get(signature, "outputs"))) {
        const json_t *picture = json_object_get(signature, "picture");
        bool has_picture = json_is_object(picture) || json_is_true(picture);
        interface = json_pack("{s:o,s:o,s:b,s:O?,s:o}", "inputs",
                              ports_of(json_object_get(signature, "inputs")), "outputs",
                              ports_of(json_object_get(signature, "outputs")), "picture",
                              has_picture, "output_kind", json_object_get(signature, "output_kind"),
                              "labels", labels_of(json_object_get(signature, "labels"), arena));
    }
    json_decref(signature);
    return interface;
}

char *weir_interface_of(const char *signature, struct weir_arena *arena)
{
    json_t *interface = interface_of(signature, arena);
    char *text = interface != NULL ? weir_json_text(interface, arena) : NULL;
    json_decref(interface);
    return text;
}

/* ---- changes ------------------------------------------------------------------------------------- */

struct changes {
    struct weir_arena *arena;
    char *text;
    size_t n;
    bool is_compatible;
};

static void add(struct changes *changes, bool is_compatible, const char *text)
{
    changes->n++;
    changes->is_compatible = changes->is_compatible && is_compatible;
    if (changes->n <= CHANGES_SHOWN) {
        changes->text =
            weir_arena_printf(changes->arena, "%s%s%s", changes->text != NULL ? changes->text : "",
                              changes->text != NULL ? "; " : "", text);
    }
}

static const char *text_at(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

static const json_t *port_find(const json_t *ports, const char *name)
{
    for (size_t i = 0; i < json_array_size(ports); i++) {
        if (strcmp(text_at(json_array_get(ports, i), "name"), name) == 0) {
            return json_array_get(ports, i);
        }
    }
    return NULL;
}

/* "FP32 [-1,8]" */
static const char *port_text(const json_t *port, struct weir_arena *arena)
{
    char *shape = weir_json_text(json_object_get(port, "shape"), arena);
    return weir_arena_printf(arena, "%s %s", text_at(port, "datatype"), shape);
}

/* Does an input take each shape that it took; has an output the sizes that it had? */
static bool shapes_fit(const json_t *before, const json_t *now, bool is_input, size_t n_compared)
{
    if (json_array_size(before) != json_array_size(now)) {
        return false;
    }
    for (size_t i = 0; i < n_compared; i++) {
        json_int_t old = json_integer_value(json_array_get(before, i));
        json_int_t new = json_integer_value(json_array_get(now, i));
        if (old != new &&new >= 0 && (is_input || old >= 0)) {
            return false;
        }
    }
    return true;
}

struct side {
    const char *noun; /* "input" */
    const json_t *before, *now;
    bool is_input;
    bool has_classes; /* the last dimension of the first output is compared by its labels */
};

static void compare_port(struct changes *changes, const struct side *side, size_t i)
{
    const json_t *before = json_array_get(side->before, i);
    const char *name = text_at(before, "name");
    const json_t *now = port_find(side->now, name);
    if (now == NULL) {
        add(changes, false,
            weir_arena_printf(changes->arena, "it has no %s %.60s any more", side->noun, name));
        return;
    }
    const json_t *old_shape = json_object_get(before, "shape");
    const json_t *shape = json_object_get(now, "shape");
    size_t n = json_array_size(old_shape);
    size_t n_compared = n > 0 && i == 0 && side->has_classes ? n - 1 : n;
    bool is_same_type = strcmp(text_at(before, "datatype"), text_at(now, "datatype")) == 0;
    bool fits = is_same_type && shapes_fit(old_shape, shape, side->is_input, n_compared);
    bool is_same_shape = n_compared < n ? shapes_fit(old_shape, shape, true, n_compared)
                                        : json_equal(old_shape, shape);
    if (!fits || !is_same_type || !is_same_shape) {
        add(changes, fits,
            weir_arena_printf(changes->arena, "its %s %.60s is %.80s, before %.80s", side->noun,
                              name, port_text(now, changes->arena),
                              port_text(before, changes->arena)));
    }
}

static void compare_ports(struct changes *changes, const struct side *side)
{
    for (size_t i = 0; i < json_array_size(side->before); i++) {
        compare_port(changes, side, i);
    }
    for (size_t i = 0; i < json_array_size(side->now); i++) {
        const char *name = text_at(json_array_get(side->now, i), "name");
        if (port_find(side->before, name) == NULL) {
            add(changes, !side->is_input,
                weir_arena_printf(changes->arena, "it has a new %s %.60s (%.80s)", side->noun, name,
                                  port_text(json_array_get(side->now, i), changes->arena)));
        }
    }
}

static json_int_t n_labels(const json_t *labels)
{
    return json_is_array(labels) ? (json_int_t)json_array_size(labels)
                                 : json_integer_value(json_object_get(labels, "n"));
}

static void compare_listed(struct changes *changes, const json_t *before, const json_t *now)
{
    size_t n_before = json_array_size(before), n_now = json_array_size(now);
    for (size_t i = 0; i < n_before; i++) {
        const char *old = json_string_value(json_array_get(before, i));
        const char *label = json_string_value(json_array_get(now, i));
        if (label == NULL) {
            add(changes, false,
                weir_arena_printf(changes->arena, "it has %zu classes, before %zu", n_now,
                                  n_before));
            return;
        }
        if (old == NULL || strcmp(old, label) != 0) {
            add(changes, false,
                weir_arena_printf(changes->arena, "its class %zu is \"%.60s\", before \"%.60s\"", i,
                                  label, old != NULL ? old : ""));
            return;
        }
    }
    if (n_now > n_before) {
        add(changes, true,
            weir_arena_printf(changes->arena,
                              "it has %zu classes, before %zu: the new ones are "
                              "behind the others",
                              n_now, n_before));
    }
}

static void compare_labels(struct changes *changes, const json_t *before, const json_t *now)
{
    bool had = n_labels(before) > 0, has = n_labels(now) > 0;
    if (had != has) {
        add(changes, has,
            has ? "its classes have names now" : "its classes have no names any more");
    } else if (has && json_is_array(before) && json_is_array(now)) {
        compare_listed(changes, before, now);
    } else if (has && json_equal(before, now) != 1) {
        add(changes, false,
            weir_arena_printf(changes->arena,
                              "it has %" JSON_INTEGER_FORMAT
                              " classes, other ones than the %" JSON_INTEGER_FORMAT " before",
                              n_labels(now), n_labels(before)));
    }
}

static void compare(struct changes *changes, const json_t *before, const json_t *now)
{
    const json_t *old_labels = json_object_get(before, "labels"),
                 *labels = json_object_get(now, "labels");
    const struct side inputs = {"input", json_object_get(before, "inputs"),
                                json_object_get(now, "inputs"), true, false};
    const struct side outputs = {"output", json_object_get(before, "outputs"),
                                 json_object_get(now, "outputs"), false,
                                 n_labels(old_labels) > 0 && n_labels(labels) > 0};
    compare_ports(changes, &inputs);
    compare_ports(changes, &outputs);
    compare_labels(changes, old_labels, labels);
    bool took = json_is_true(json_object_get(before, "picture")),
         takes = json_is_true(json_object_get(now, "picture"));
    if (took != takes) {
        add(changes, takes, takes ? "it takes pictures now" : "it takes no pictures any more");
    }
    const char *old_kind = text_at(before, "output_kind"), *kind = text_at(now, "output_kind");
    if (strcmp(old_kind, kind) != 0) {
        add(changes, false,
            weir_arena_printf(changes->arena, "what it gives is \"%.40s\", before \"%.40s\"", kind,
                              old_kind));
    }
}

char *weir_interface_changes(const char *before_text, const char *now_text,
                             struct weir_arena *arena, bool *out_is_compatible)
{
    json_t *before = interface_of(before_text, arena), *now = interface_of(now_text, arena);
    struct changes changes = {.arena = arena, .is_compatible = true};
    if (before != NULL && now != NULL) {
        compare(&changes, before, now);
    }
    json_decref(before);
    json_decref(now);
    if (changes.n > CHANGES_SHOWN) {
        changes.text =
            weir_arena_printf(arena, "%s; and %zu more", changes.text, changes.n - CHANGES_SHOWN);
    }
    if (out_is_compatible != NULL) {
        *out_is_compatible = changes.is_compatible;
    }
    return changes.text;
}
