#include "net.h"
#include "profile_private.h"

#include "base/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define SPANS_PER_STEP    64
#define MAX_RECORDS_BYTES ((size_t)1 << 32)

struct profile_record {
    uint64_t begin_ns, end_ns;
    int32_t i_op, n_images;
    int what;
};

struct profile_span {
    const char *name;
    uint64_t begin_ns, end_ns;
};

/** Of one thread, which alone writes it during a run. */
struct profile_row {
    struct profile_record *records;
    size_t n, n_lost;
};

struct weir_profile {
    struct weir_net *net;
    struct profile_row *rows; /**< By thread. */
    size_t max_records;
    struct profile_span *spans;
    size_t n_spans, max_spans, n_lost_spans;
};

static const char *const what_texts[PROFILE_WHATS] = {
    [TASK_FORWARD] = "forward",
    [TASK_FORWARD_SUMS] = "forward sums",
    [TASK_LOSS] = "loss",
    [TASK_BACKWARD_SUMS] = "backward sums",
    [TASK_BACKWARD] = "backward",
    [TASK_RECOMPUTE] = "forward again",
    [TASK_WEIGHT_GRADIENT] = "weight gradient",
    [TASK_REFRESH_BACKWARD] = "refresh for backward",
    [TASK_PACK_FORWARD] = "weights for forward",
    [TASK_PACK_BACKWARD] = "weights for backward",
    [PROFILE_FORWARD_COMBINE] = "statistics",
    [PROFILE_BACKWARD_COMBINE] = "norm gradients",
    [PROFILE_REFRESH] = "refresh",
    [PROFILE_GRADIENT_AND_UPDATE] = "weight gradient and update",
};

/* ---- life ------------------------------------------------------------------------------------ */

/** Records of one run of a schedule and of a refresh, whichever threads make them. */
static size_t records_of(const struct weir_net *net, const struct task_schedule *s)
{
    if (s->n_stages == 0) {
        return 0;
    }
    return (size_t)s->first_task[s->n_stages] * (size_t)net->plan->n_slices +
           (size_t)s->first_combine[s->n_stages] + (size_t)s->n_deferred +
           (size_t)net->refresh.n_deferred;
}

static weir_status allocate(struct weir_profile *profile, size_t n_steps)
{
    const struct weir_net *net = profile->net;
    size_t n_threads = (size_t)net->n_threads, a = records_of(net, &net->plan->training),
           b = records_of(net, &net->plan->inference);
    profile->max_records = WEIR_MAX(a, b) * n_steps;
    profile->max_spans = SPANS_PER_STEP * n_steps;
    if (profile->max_records > MAX_RECORDS_BYTES / sizeof(struct profile_record) / n_threads) {
        return WEIR_ERR_LIMIT;
    }
    profile->spans = calloc(profile->max_spans, sizeof(*profile->spans));
    profile->rows = calloc(n_threads, sizeof(*profile->rows));
    bool is_there = profile->spans && profile->rows;
    for (size_t t = 0; is_there && t < n_threads; t++) {
        profile->rows[t].records = calloc(profile->max_records + 1, sizeof(struct profile_record));
        is_there = profile->rows[t].records != NULL;
    }
    return is_there ? WEIR_OK : WEIR_ERR_NOMEM;
}

weir_status weir_profile_create(struct weir_net *net, int32_t n_steps, struct weir_profile **out,
                                struct weir_error *err)
{
    if (n_steps < 1 || net->profile) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s",
                              net->profile ? "the net is being profiled already"
                                           : "a profile is of 1 step at least");
    }
    struct weir_profile *profile = calloc(1, sizeof(*profile));
    if (!profile) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "out of memory for a profile");
    }
    profile->net = net;
    weir_status status = allocate(profile, (size_t)n_steps);
    if (status != WEIR_OK) {
        weir_profile_destroy(profile);
        return weir_error_set(err, status, "no room for the records of %d steps", n_steps);
    }
    net->profile = profile;
    *out = profile;
    return WEIR_OK;
}

void weir_profile_destroy(struct weir_profile *profile)
{
    if (!profile) {
        return;
    }
    for (int32_t t = 0; profile->rows && t < profile->net->n_threads; t++) {
        free(profile->rows[t].records);
    }
    if (profile->net->profile == profile) {
        profile->net->profile = NULL;
    }
    free(profile->rows);
    free(profile->spans);
    free(profile);
}

/* ---- recording ------------------------------------------------------------------------------- */

void profile_end(struct weir_profile *profile, int32_t i_thread, int32_t i_op, int what,
                 int32_t n_images, uint64_t begin_ns)
{
    if (!profile) {
        return;
    }
    struct profile_row *row = &profile->rows[i_thread];
    if (row->n == profile->max_records) {
        row->n_lost++;
        return;
    }
    row->records[row->n++] = (struct profile_record){.begin_ns = begin_ns,
                                                     .end_ns = weir_mono_ns(),
                                                     .i_op = i_op,
                                                     .n_images = n_images,
                                                     .what = what};
}

void weir_profile_span(struct weir_profile *profile, const char *name, uint64_t begin_ns,
                       uint64_t end_ns)
{
    if (profile->n_spans == profile->max_spans) {
        profile->n_lost_spans++;
        return;
    }
    profile->spans[profile->n_spans++] =
        (struct profile_span){.name = name, .begin_ns = begin_ns, .end_ns = end_ns};
}

/* ---- what an operation is worth -------------------------------------------------------------- */

/* A record of an op with row tiles is of one of them; one of an update is of its part of the
 * rows. */
static double n_records_of_image(const struct op *op, const struct profile_record *record)
{
    int32_t n = record->what == PROFILE_GRADIENT_AND_UPDATE ? op->n_updates : op->n_row_tiles;
    return n > 0 ? n : 1;
}

static double macs_of_image(const struct op *op)
{
    if (op->kind == LAYER_LINEAR) {
        return (double)op_elems(op->in[0]) * op->conv.k;
    }
    if (op->kind != LAYER_CONV) {
        return 0;
    }
    int32_t n_read = op->in[0].c / op->conv.groups; /* channels that an output is made of */
    return (double)op_elems(op->out) * n_read * op->conv.kernel_h * op->conv.kernel_w;
}

static double flop_of(const struct net_plan *plan, const struct profile_record *record)
{
    const struct plan_op *o = &plan->ops[record->i_op];
    bool is_backward = record->what == TASK_BACKWARD && plan->needs_gradient[o->in[0]];
    bool counts = record->what == TASK_FORWARD || is_backward ||
                  record->what == TASK_WEIGHT_GRADIENT ||
                  record->what == PROFILE_GRADIENT_AND_UPDATE;
    return counts
               ? 2 * macs_of_image(&o->op) * record->n_images / n_records_of_image(&o->op, record)
               : 0;
}

static double bytes_of(const struct net_plan *plan, const struct profile_record *record)
{
    const struct op *op = &plan->ops[record->i_op].op;
    const struct op_reads reads = plan_op_reads(op);
    double in = 0, params = 0, out = (double)op_elems(op->out),
           n = record->n_images / n_records_of_image(op, record);
    for (int32_t j = 0; j < op->n_in; j++) {
        in += (double)op_elems(op->in[j]);
    }
    for (int32_t j = 0; j < OP_MAX_PARAMS; j++) {
        params += (double)op->params[j].n_elems;
    }
    double elems = 0, elem_bytes = plan_image_bytes(plan, plan->ops[record->i_op].out) / out;
    switch (record->what) {
    case TASK_FORWARD:
    case TASK_RECOMPUTE:
    case TASK_WEIGHT_GRADIENT: /* x and dy in, the gradient out */
        elems = n * (in + out);
        break;
    case TASK_BACKWARD:
        elems = n * (in + out + (reads.backward_x ? in : 0) + (reads.backward_y ? out : 0));
        break;
    case TASK_FORWARD_SUMS:
    case TASK_LOSS:
        return n * in * elem_bytes;
    case TASK_BACKWARD_SUMS:
        return n * (in + out) * elem_bytes;
    case PROFILE_GRADIENT_AND_UPDATE: /* x and dy in, weights in and out */
        return n * (in + out) * elem_bytes +
               2 * params * sizeof(float) / n_records_of_image(op, record);
    default:
        return 2 * params * sizeof(float);
    }
    return elems * elem_bytes + params * sizeof(float);
}

void weir_profile_sum(const struct weir_profile *profile, struct weir_profile_sum *out)
{
    *out = (struct weir_profile_sum){.begin_ns = UINT64_MAX};
    for (int32_t t = 0; t < profile->net->n_threads; t++) {
        const struct profile_row *row = &profile->rows[t];
        out->n_records += row->n;
        out->n_lost += row->n_lost;
        for (size_t i = 0; i < row->n; i++) {
            const struct profile_record *record = &row->records[i];
            out->busy_s += (double)(record->end_ns - record->begin_ns) / 1e9;
            out->flop += flop_of(profile->net->plan, record);
            out->begin_ns = WEIR_MIN(out->begin_ns, record->begin_ns);
            out->end_ns = WEIR_MAX(out->end_ns, record->end_ns);
        }
    }
    out->begin_ns = out->n_records > 0 ? out->begin_ns : 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

/** What is the same for a whole trace. */
struct trace {
    FILE *file;
    int pid;
    double peak_flops;
    uint64_t zero_ns; /**< The trace begins here. */
    bool has_events, is_out_of_memory;
};

static void put_event(struct trace *trace, json_t *event)
{
    trace->is_out_of_memory = trace->is_out_of_memory || !event;
    if (event) {
        (void)fputs(trace->has_events ? ",\n" : "\n", trace->file);
        (void)json_dumpf(event, trace->file, JSON_COMPACT | JSON_REAL_PRECISION(12));
        trace->has_events = true;
        json_decref(event);
    }
}

static void put_thread_name(struct trace *trace, int tid, const char *prefix, int number)
{
    char name[64];
    (void)snprintf(name, sizeof name, number >= 0 ? "%s %d" : "%s", prefix, number);
    put_event(trace, json_pack("{s:s,s:s,s:i,s:i,s:{s:s}}", "name", "thread_name", "ph", "M", "pid",
                               trace->pid, "tid", tid, "args", "name", name));
}

static double us_of(const struct trace *trace, uint64_t at_ns)
{
    return ((double)at_ns - (double)trace->zero_ns) / 1e3;
}

static void put_record(struct trace *trace, const struct net_plan *plan, int tid,
                       const struct profile_record *record)
{
    const struct op *op = &plan->ops[record->i_op].op;
    char name[LAYER_NAME_MAX_BYTES + 32];
    double s = (double)(record->end_ns - record->begin_ns) / 1e9;
    double flop = flop_of(plan, record), bytes = bytes_of(plan, record);
    (void)snprintf(name, sizeof name, "%s %s", op->name, what_texts[record->what]);
    json_t *args = json_pack("{s:s,s:s,s:i,s:f,s:f,s:f}", "layer", layer_kind_text(op->kind),
                             "phase", what_texts[record->what], "images", record->n_images, "flop",
                             flop, "bytes", bytes, "ms", s * 1e3);
    if (args && s > 0) {
        (void)json_object_set_new(args, "gb_s", json_real(bytes / s / 1e9));
        (void)json_object_set_new(args, "gflop_s", json_real(flop / s / 1e9));
    }
    if (args && s > 0 && trace->peak_flops > 0) {
        (void)json_object_set_new(args, "peak_share", json_real(flop / s / trace->peak_flops));
    }
    put_event(trace,
              json_pack("{s:s,s:s,s:s,s:f,s:f,s:i,s:i,s:o}", "name", name, "cat",
                        what_texts[record->what], "ph", "X", "ts", us_of(trace, record->begin_ns),
                        "dur", s * 1e6, "pid", trace->pid, "tid", tid, "args", args));
}

/** By kind of layer and phase: how often, how long, how well. */
static json_t *sums_of(const struct weir_profile *profile, const struct trace *trace)
{
    double s[LAYER_KIND_COUNT][PROFILE_WHATS] = {{0}},
           flop[LAYER_KIND_COUNT][PROFILE_WHATS] = {{0}},
           bytes[LAYER_KIND_COUNT][PROFILE_WHATS] = {{0}};
    int64_t n[LAYER_KIND_COUNT][PROFILE_WHATS] = {{0}};
    const struct net_plan *plan = profile->net->plan;
    for (int32_t t = 0; t < profile->net->n_threads; t++) {
        for (size_t i = 0; i < profile->rows[t].n; i++) {
            const struct profile_record *r = &profile->rows[t].records[i];
            enum layer_kind kind = plan->ops[r->i_op].op.kind;
            n[kind][r->what]++;
            s[kind][r->what] += (double)(r->end_ns - r->begin_ns) / 1e9;
            flop[kind][r->what] += flop_of(plan, r);
            bytes[kind][r->what] += bytes_of(plan, r);
        }
    }
    json_t *rows = json_array();
    for (int k = 0; rows && k < LAYER_KIND_COUNT; k++) {
        for (int w = 0; w < PROFILE_WHATS; w++) {
            if (n[k][w] > 0) {
                double rate = s[k][w] > 0 ? flop[k][w] / s[k][w] : 0;
                json_t *row = json_pack("{s:s,s:s,s:I,s:f,s:f,s:f}", "layer",
                                        layer_kind_text((enum layer_kind)k), "phase", what_texts[w],
                                        "n", (json_int_t)n[k][w], "ms", s[k][w] * 1e3, "flop",
                                        flop[k][w], "bytes", bytes[k][w]);
                if (row && trace->peak_flops > 0) {
                    (void)json_object_set_new(row, "peak_share",
                                              json_real(rate / trace->peak_flops));
                }
                (void)json_array_append_new(rows, row);
            }
        }
    }
    return rows;
}

static void write_events(const struct weir_profile *profile, struct trace *trace)
{
    const struct weir_net *net = profile->net;
    for (int32_t t = 0; t < net->n_threads; t++) {
        put_thread_name(trace, t, "net thread", t);
        for (size_t i = 0; i < profile->rows[t].n; i++) {
            put_record(trace, net->plan, t, &profile->rows[t].records[i]);
        }
    }
    put_thread_name(trace, net->n_threads, "step", -1);
    for (size_t i = 0; i < profile->n_spans; i++) {
        const struct profile_span *span = &profile->spans[i];
        put_event(trace, json_pack("{s:s,s:s,s:s,s:f,s:f,s:i,s:i}", "name", span->name, "cat",
                                   "step", "ph", "X", "ts", us_of(trace, span->begin_ns), "dur",
                                   (double)(span->end_ns - span->begin_ns) / 1e3, "pid", trace->pid,
                                   "tid", (int)net->n_threads));
    }
}

static void write_trace(const struct weir_profile *profile, struct trace *trace)
{
    struct weir_profile_sum sum;
    weir_profile_sum(profile, &sum);
    trace->zero_ns = sum.begin_ns;
    for (size_t i = 0; i < profile->n_spans; i++) {
        trace->zero_ns = WEIR_MIN(trace->zero_ns, profile->spans[i].begin_ns);
    }
    (void)fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", trace->file);
    write_events(profile, trace);
    (void)fputs("\n],\"otherData\":", trace->file);
    json_t *other = json_pack("{s:i,s:I,s:I,s:f,s:f,s:f,s:o}", "threads", profile->net->n_threads,
                              "operations", (json_int_t)sum.n_records, "lost",
                              (json_int_t)(sum.n_lost + profile->n_lost_spans), "busy_ms",
                              sum.busy_s * 1e3, "flop", sum.flop, "peak_gflop_s_per_thread",
                              trace->peak_flops / 1e9, "sums", sums_of(profile, trace));
    trace->is_out_of_memory = trace->is_out_of_memory || !other;
    if (other) {
        (void)json_dumpf(other, trace->file, JSON_COMPACT | JSON_REAL_PRECISION(12));
        json_decref(other);
    }
    (void)fputs("}\n", trace->file);
}

weir_status weir_profile_write(const struct weir_profile *profile, const char *path, int pid,
                               double peak_flops, struct weir_error *err)
{
    struct trace trace = {.file = fopen(path, "we"), .pid = pid, .peak_flops = peak_flops};
    if (!trace.file) {
        return weir_error_set_errno(err, errno, "%s", path);
    }
    write_trace(profile, &trace);
    bool is_bad = ferror(trace.file) != 0;
    if (fclose(trace.file) != 0 || is_bad) {
        return weir_error_set_errno(err, errno != 0 ? errno : EIO, "%s", path);
    }
    return trace.is_out_of_memory
               ? weir_error_set(err, WEIR_ERR_NOMEM, "%s: out of memory for the trace", path)
               : WEIR_OK;
}
