#include "vision/detector_fit.h"

#include "base/names.h"
#include "vision/detector_common.h"

#include <string.h>

#define WHERE "detector"

/* ---- ports in sentences ---------------------------------------------------------------------------- */

static void write_dims(const struct weir_detector_port *port, char *out, size_t size)
{
    size_t len = (size_t)snprintf(out, size, "%.40s [", port->name);
    for (size_t i = 0; i < port->rank && len < size; i++) {
        const char *comma = i > 0 ? "," : "";
        len += port->dims[i] < 0 ? (size_t)snprintf(out + len, size - len, "%s?", comma)
                                 : (size_t)snprintf(out + len, size - len, "%s%lld", comma,
                                                    (long long)port->dims[i]);
    }
    if (len < size) {
        (void)snprintf(out + len, size - len, "]");
    }
}

static struct weir_names names_of(const struct weir_detector_port *ports, size_t n)
{
    struct weir_names names = {0};
    for (size_t i = 0; i < n; i++) {
        char text[128];
        write_dims(&ports[i], text, sizeof text);
        weir_names_add(&names, text, strlen(text));
    }
    return names;
}

/* ---- the input --------------------------------------------------------------------------------------- */

#define SIDE_MAX 8192 /* where the model fixes the input */

static weir_status read_input(const struct detector_ports *ports, struct detector_model *model,
                              struct weir_error *err)
{
    if (ports->n_inputs == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the detector has no input");
    }
    if (ports->n_inputs > 1) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "the detector takes \"%.60s\" beside the picture: export it without "
                              "what comes after the network",
                              ports->inputs[1].name);
    }
    const struct weir_detector_port *port = &ports->inputs[0];
    bool is_picture = port->rank == 4;
    bool is_planar = is_picture && (port->dims[1] == 3 || port->dims[1] == 1);
    bool is_interleaved = is_picture && (port->dims[3] == 3 || port->dims[3] == 1);
    if (!is_planar && !is_interleaved) {
        char text[128];
        write_dims(port, text, sizeof text);
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "the detector's input is %s, and a picture is N×C×H×W or N×H×W×C with "
            "1 or 3 channels",
            text);
    }
    int64_t height = port->dims[is_planar ? 2 : 1], width = port->dims[is_planar ? 3 : 2];
    if (height == 0 || width == 0 || height > SIDE_MAX || width > SIDE_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "the detector's input is %lld×%lld; a side has 1 to %d pixels",
                              (long long)width, (long long)height, SIDE_MAX);
    }
    model->channels = (int)port->dims[is_planar ? 1 : 3];
    model->is_planar = is_planar;
    model->is_u8 = port->is_u8;
    model->plan.width = width > 0 ? (int)width : 0;
    model->plan.height = height > 0 ? (int)height : 0;
    return WEIR_OK;
}

/* ---- the outputs ------------------------------------------------------------------------------------- */

static weir_status add_output(const struct detector_ports *ports, size_t i,
                              struct weir_arena *arena, struct detector_plan *plan,
                              struct weir_error *err)
{
    const struct weir_detector_port *port = &ports->outputs[i];
    struct detector_port *output = &plan->outputs[plan->n_outputs];
    if (port->rank > DETECTOR_RANK_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the detector's output \"%.60s\" has rank %zu",
                              port->name, port->rank);
    }
    if (plan->n_outputs == DETECTOR_OUTPUTS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "the detector has %zu outputs; name those that are decoded: outputs",
                              ports->n_outputs);
    }
    *output = (struct detector_port){
        .name = weir_arena_strdup(arena, port->name), .rank = port->rank, .index = i};
    memcpy(output->dims, port->dims, port->rank * sizeof *output->dims);
    plan->n_outputs++;
    return WEIR_OK;
}

static weir_status add_named(const struct detector_ports *ports, const char *name,
                             struct weir_arena *arena, struct detector_plan *plan,
                             struct weir_error *err)
{
    for (size_t i = 0; i < ports->n_outputs; i++) {
        if (strcmp(ports->outputs[i].name, name) == 0) {
            return add_output(ports, i, arena, plan, err);
        }
    }
    struct weir_names names = names_of(ports->outputs, ports->n_outputs);
    return weir_error_set(err, WEIR_ERR_INVALID,
                          WHERE ".outputs: the model has no output \"%.60s\"; it has %s", name,
                          names.text);
}

static weir_status read_outputs(const struct detector_ports *ports, const json_t *names,
                                struct weir_arena *arena, struct detector_plan *plan,
                                struct weir_error *err)
{
    const json_t *name;
    size_t i;
    for (i = 0; names == NULL && i < ports->n_outputs; i++) {
        WEIR_TRY(add_output(ports, i, arena, plan, err));
    }
    json_array_foreach(names, i, name)
    {
        WEIR_TRY(add_named(ports, json_string_value(name), arena, plan, err));
    }
    return WEIR_OK;
}

/* ---- options ----------------------------------------------------------------------------------------- */

/* An object has the kind's options and the common ones: these go to another. */
static void move_common(json_t *own, json_t *common)
{
    for (size_t i = 0; i < weir_detectors.n_common; i++) {
        const char *key = weir_detectors.common[i].name; /* none has a "-" */
        json_t *value = json_object_get(own, key);
        if (value != NULL) {
            json_object_set(common, key, value);
            (void)json_object_del(own, key);
        }
    }
}

static weir_status read_three(const json_t *value, const char *where, bool is_divisor, float out[3],
                              struct weir_error *err)
{
    bool is_list = json_is_array(value);
    if (value == NULL) {
        return WEIR_OK;
    }
    for (size_t c = 0; c < 3; c++) {
        const json_t *number = is_list ? json_array_get(value, c) : value;
        float f = (float)json_number_value(number);
        if (!json_is_number(number) || (is_list && json_array_size(value) != 3) || !isfinite(f) ||
            (is_divisor && f <= 0)) {
            return weir_error_set(err, WEIR_ERR_INVALID, "%s: expected %s, or three", where,
                                  is_divisor ? "a number above 0" : "a number");
        }
        out[c] = f;
    }
    return WEIR_OK;
}

static weir_status read_classes(const json_t *list, struct detector_model *model,
                                struct weir_error *err)
{
    const json_t *item;
    size_t i;
    if (list != NULL && (!json_is_array(list) || json_array_size(list) > DETECTOR_CLASSES_MAX)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              WHERE ".classes: expected a list of at most %d numbers",
                              DETECTOR_CLASSES_MAX);
    }
    json_array_foreach(list, i, item)
    {
        json_int_t number = json_is_integer(item) ? json_integer_value(item) : -1;
        if (number < 0 || number > INT32_MAX) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  WHERE ".classes[%zu]: expected a number from 0 on", i);
        }
        model->classes[model->n_classes++] = (int32_t)number;
    }
    return WEIR_OK;
}

/* What the document says of the input, in place of the kind's. */
static weir_status apply_common(const struct detector_common *common, struct detector_model *model,
                                struct weir_error *err)
{
    struct detector_look *look = &model->plan.look;
    if (model->is_u8 && (common->scale > 0 || common->mean != NULL || common->std != NULL)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              WHERE
                              ": the model takes bytes, so pixels are given as they are: take "
                              "scale, mean and std out");
    }
    if (model->channels == 1 && common->colours != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              WHERE ".colours: the model takes grey pictures: take it out");
    }
    WEIR_TRY(read_three(common->mean, WHERE ".mean", false, look->mean, err));
    WEIR_TRY(read_three(common->std, WHERE ".std", true, look->std, err));
    look->is_bgr = common->colours != NULL ? strcmp(common->colours, "bgr") == 0 : look->is_bgr;
    look->scale = common->scale > 0 ? (float)common->scale : look->scale;
    look->pad = common->pad >= 0 ? (float)common->pad : look->pad;
    look->divisor = common->divisor > 0 ? (int)common->divisor : look->divisor;
    if (common->fit != NULL) {
        look->fit = strcmp(common->fit, "stretch") == 0  ? DETECTOR_STRETCH
                    : strcmp(common->fit, "centre") == 0 ? DETECTOR_CENTRE
                                                         : DETECTOR_CORNER;
    }
    return WEIR_OK;
}

/* ---- which kind ---------------------------------------------------------------------------------------- */

/* May the outputs be this kind's? Its plan is made then. */
static bool try_kind(const struct weir_kind *kind, const void *options, bool is_asked,
                     struct detector_model *model)
{
    const struct detector_ops *ops = kind->ops;
    struct detector_plan plan = model->plan;
    plan.options = options;
    plan.is_asked = is_asked;
    plan.look = ops->look;
    plan.threshold = ops->threshold;
    plan.overlap = ops->overlap;
    if (!ops->fit(&plan)) {
        return false;
    }
    model->plan = plan;
    model->ops = ops;
    return true;
}

static weir_status fit_named(const struct weir_kind *kind, const struct detector_ports *ports,
                             struct weir_arena *arena, struct detector_model *model,
                             struct weir_error *err)
{
    const struct detector_ops *ops = kind->ops;
    struct weir_configured configured;
    WEIR_TRY(weir_kind_read(kind, model->own, WHERE, arena, &configured, err));
    if (!try_kind(kind, configured.options, true, model)) {
        struct weir_names names = names_of(ports->outputs, ports->n_outputs);
        return weir_error_set(err, WEIR_ERR_INVALID, "%s takes %s; this model has %s", kind->name,
                              ops->takes, names.text);
    }
    model->why = weir_arena_printf(arena, "Decoded as %s%s%s, as it is asked for.", kind->name,
                                   model->plan.why[0] != '\0' ? ": " : "", model->plan.why);
    return WEIR_OK;
}

static weir_status recognise(const struct detector_ports *ports, struct weir_arena *arena,
                             struct detector_model *model, struct weir_error *err)
{
    struct weir_error not_its;
    for (size_t i = 0; i < weir_detectors.n_kinds; i++) {
        const struct weir_kind *kind = weir_detectors.kinds[i];
        struct weir_configured configured;
        if (weir_kind_read(kind, model->own, WHERE, arena, &configured, &not_its) == WEIR_OK &&
            try_kind(kind, configured.options, false, model)) {
            model->why = weir_arena_printf(arena, "Taken for %s: %s.", kind->name, model->plan.why);
            return WEIR_OK;
        }
    }
    struct weir_names names = names_of(ports->outputs, ports->n_outputs), kinds = {0};
    for (size_t i = 0; i < weir_detectors.n_kinds; i++) {
        weir_names_add(&kinds, weir_detectors.kinds[i]->name,
                       strlen(weir_detectors.kinds[i]->name));
    }
    return weir_error_set(
        err, WEIR_ERR_UNSUPPORTED,
        "these outputs are of no kind of detector that is known: %s; say which of "
        "%s it is",
        names.text, kinds.text);
}

static weir_status fit_parts(const struct weir_detector_options *options, const json_t *common_json,
                             const struct detector_ports *ports, struct weir_arena *arena,
                             struct detector_model *model, struct weir_error *err)
{
    const struct weir_kind *kind = NULL;
    struct detector_common common;
    if (options->kind != NULL) {
        WEIR_TRY(weir_registry_find(&weir_detectors, options->kind, WHERE ".kind", &kind, err));
        WEIR_TRY(weir_kind_check_members(&weir_detectors, kind, model->own, WHERE, err));
    }
    memset(&common, 0, sizeof common);
    WEIR_TRY(weir_options_read(weir_detectors.common, weir_detectors.n_common, common_json, WHERE,
                               NULL, arena, &common, err));
    WEIR_TRY(read_input(ports, model, err));
    WEIR_TRY(read_outputs(ports, common.outputs, arena, &model->plan, err));
    WEIR_TRY(read_classes(common.classes, model, err));
    WEIR_TRY(kind != NULL ? fit_named(kind, ports, arena, model, err)
                          : recognise(ports, arena, model, err));
    return apply_common(&common, model, err);
}

weir_status detector_fit_model(const struct weir_detector_options *options,
                               const struct detector_ports *ports, struct weir_arena *arena,
                               struct detector_model *out, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *common = json_object();
    memset(out, 0, sizeof *out);
    out->n_outputs = ports->n_outputs;
    out->own = json_deep_copy(options->of_kind);
    out->own = out->own != NULL ? out->own : json_object();
    move_common(out->own, common);
    WEIR_TRY(fit_parts(options, common, ports, arena, out, err));
    out->plan.threshold = isnan(options->threshold) ? out->plan.threshold : options->threshold;
    out->plan.overlap = isnan(options->overlap) ? out->plan.overlap : options->overlap;
    if (!(out->plan.threshold >= 0 && out->plan.threshold <= 1)) {
        return weir_error_set(err, WEIR_ERR_INVALID, WHERE ".threshold: expected 0 to 1");
    }
    return WEIR_OK;
}

void detector_model_fini(struct detector_model *model)
{
    json_decref(model->own);
    model->own = NULL;
}
