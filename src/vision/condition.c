#include "vision/condition.h"

#include "base/macros.h"
#include "vision/frame_clock.h"
#include "vision/range.h"

#include <math.h>
#include <string.h>

#define W        WEIR_CONDITION_WIDTH
#define H        WEIR_CONDITION_HEIGHT
#define N_PIXELS (W * H)
#define N_BLOCKS WEIR_CONDITION_BLOCKS

/* Edges are compared in tiles: what is shifted by one has other edges in most. */
#define TILE 4

enum { TILES_W = W / TILE, TILES_H = H / TILE, N_TILES = TILES_W * TILES_H };

/* And in parts of the picture, of which something may hide some. */
enum { PART_W = TILES_W / 4, PART_H = TILES_H / 3, N_PARTS = 12 };

#define SAME          1         /* Grey values: a picture that differs by no more is the same. */
#define BACKGROUND_MS 2000.0F   /* What stays for so long is the background of motion, to 63 %. */
#define FOLLOW_MS     600000.0F /* The past follows the light of the day in this time, to 63 %. */
#define EDGES_MIN     1.0 /* Deviation of the tiles of a part: below there are no edges to compare. */
#define CONTRAST_MIN                                                                               \
    25.0 /* Variance of grey values: below, a picture is flat, and its noise no edges. */
#define EXCESS_MIN 0.5  /* Kurtosis of the Laplacian: noise has none, edges have much. */
#define COVERED    0.5F /* Part of min_agreement: what is less sharp, and agrees less, is covered. */

const struct weir_condition_options weir_condition_usual = {
    .hold_ms = 3000,
    .place_ms = 30000,
    .frozen_ms = 10000,
    .learn_ms = 10000,
    .dark = 24,
    .white = 245,
    .max_clipped = 0.92F,
    .min_sharpness = 0.25F,
    .min_agreement = 0.3F,
    .changed = 8,
    .min_motion = 0.004F,
};

/* By kind. */
static const struct {
    const char *name, *reason;
} kinds[WEIR_CONDITION_COUNT] = {
    [WEIR_CONDITION_WELL] = {"well", "The picture is well."},
    [WEIR_CONDITION_BLACK] = {"black",
                              "The picture is black: is the lens covered, or the light off?"},
    [WEIR_CONDITION_DAZZLED] = {"dazzled", "The picture is white: a light shines into the camera."},
    [WEIR_CONDITION_FROZEN] = {"frozen", "The camera sends the same picture again and again."},
    [WEIR_CONDITION_COVERED] = {"covered",
                                "Nothing is to be seen of the place: something covers the lens."},
    [WEIR_CONDITION_BLURRED] =
        {"blurred",
         "The picture is less sharp than it was: the lens is dirty, wet or out of focus."},
    [WEIR_CONDITION_MOVED] = {"moved", "The picture is not that of its place: the camera was "
                                       "turned, or something stands before it."},
};

/* What a picture is by itself. */
struct picture {
    float brightness, dark, white; /* Mean; shares. */
    float sharpness;               /* 0: none that noise has not. */
    float edges[N_TILES];
};

/* Pictures that are alike, one after the other. */
struct spell {
    enum weir_condition_kind kind; /* Its last picture has it. */
    int64_t since_ms, ms;
};

struct weir_condition_watch {
    struct weir_condition_options options;
    struct weir_frame_clock clock;
    bool has_picture;
    uint8_t before[N_PIXELS];
    float blocks[N_BLOCKS]; /* Means of the background. */
    bool is_masked[N_BLOCKS];
    bool has_past;
    int64_t learnt_ms; /* Time of well pictures that the past was learnt from. */
    float sharpness;   /* Means of the past. */
    float edges[N_TILES];
    int64_t same_ms; /* For so long nothing has changed. */
    enum weir_condition_kind said;
    int64_t said_since_ms;    /* Time of a picture, as the others. */
    struct spell next, place; /* next: pictures of one kind; place: of any kind of the place. */
};

weir_status weir_condition_create(const struct weir_condition_options *options,
                                  struct weir_condition_watch **out, struct weir_error *err)
{
    const struct range ranges[] = {
        {"hold_ms", (double)options->hold_ms, 0, 3600000},
        {"place_ms", (double)options->place_ms, 0, 86400000},
        {"frozen_ms", (double)options->frozen_ms, 0, 86400000},
        {"learn_ms", (double)options->learn_ms, 0, 3600000},
        {"dark", options->dark, 0, 255},
        {"white", options->white, 0, 256},
        {"max_clipped", options->max_clipped, 0, 1},
        {"min_sharpness", options->min_sharpness, 0, 1},
        {"min_agreement", options->min_agreement, -1, 1},
        {"changed", options->changed, 0, 255},
        {"min_motion", options->min_motion, 0, 1},
    };
    WEIR_TRY(ranges_check("the watch of a camera", ranges, WEIR_ARRAY_LEN(ranges), err));
    struct weir_condition_watch *watch = calloc(1, sizeof *watch);
    if (watch == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the watch of a camera");
    }
    watch->options = *options;
    *out = watch;
    return WEIR_OK;
}

void weir_condition_destroy(struct weir_condition_watch *watch)
{
    free(watch);
}

void weir_condition_mask(struct weir_condition_watch *watch, const uint8_t *blocks)
{
    for (size_t i = 0; i < N_BLOCKS; i++) {
        watch->is_masked[i] = blocks != NULL && blocks[i] == 0;
    }
}

void weir_condition_accept(struct weir_condition_watch *watch)
{
    watch->has_past = false;
    watch->learnt_ms = 0;
}

const char *weir_condition_name(enum weir_condition_kind kind)
{
    return kinds[kind].name;
}

/* ---- what a picture is ---- */

static void count_greys(const uint8_t *grey, const struct weir_condition_options *options,
                        struct picture *picture, double *out_variance)
{
    uint32_t n_of[256] = {0};
    for (size_t i = 0; i < N_PIXELS; i++) {
        n_of[grey[i]]++;
    }
    double sum = 0, squares = 0;
    uint32_t n_dark = 0, n_white = 0;
    for (int value = 0; value < 256; value++) {
        sum += (double)n_of[value] * value;
        squares += (double)n_of[value] * value * value;
        n_dark += (float)value < options->dark ? n_of[value] : 0;
        n_white += (float)value > options->white ? n_of[value] : 0;
    }
    double mean = sum / N_PIXELS;
    picture->brightness = (float)mean;
    picture->dark = (float)n_dark / N_PIXELS;
    picture->white = (float)n_white / N_PIXELS;
    *out_variance = squares / N_PIXELS - mean * mean;
}

/* The fourth moment of the Laplacian is of edges alone when that of noise, which is three times the square of the second, is taken off:
 * but for what an encoder leaves of noise, which is rare and so looks like edges. It is measured by the contrast, so that the light does
 * not matter. */
static float sharpness_of(double second, double fourth, double variance)
{
    double excess = fourth - 3 * second * second;
    bool has_edges = variance >= CONTRAST_MIN && excess > EXCESS_MIN * second * second;
    return has_edges ? (float)(sqrt(excess) / (variance + CONTRAST_MIN)) : 0;
}

/* Sharpness, and the edges of each tile: differences to the right and down. */
static void find_edges(const uint8_t *grey, double variance, struct picture *picture)
{
    int64_t second = 0, fourth = 0;
    int32_t edges[N_TILES] = {0};
    for (int y = 1; y < H - 1; y++) {
        const uint8_t *line = &grey[y * W];
        int32_t *tiles = &edges[y / TILE * TILES_W];
        for (int x = 1; x < W - 1; x++) {
            int laplacian = line[x - 1] + line[x + 1] + line[x - W] + line[x + W] - 4 * line[x];
            int64_t square = (int64_t)laplacian * laplacian;
            second += square;
            fourth += square * square;
            tiles[x / TILE] += abs(line[x + 1] - line[x]) + abs(line[x + W] - line[x]);
        }
    }
    const double n = (double)(W - 2) * (H - 2);
    picture->sharpness = sharpness_of((double)second / n, (double)fourth / n, variance);
    for (size_t i = 0; i < N_TILES; i++) {
        picture->edges[i] = (float)edges[i] / (TILE * TILE);
    }
}

/* Correlation of the edges in a part; NaN: the past has none there. */
static float agreement_in(const float *past, const float *now)
{
    double a = 0, b = 0, aa = 0, bb = 0, ab = 0;
    const double n = (double)PART_W * PART_H;
    for (int i = 0; i < PART_W * PART_H; i++) {
        int at = i / PART_W * TILES_W + i % PART_W;
        double x = (double)past[at], y = (double)now[at];
        a += x / n;
        b += y / n;
        aa += x * x / n;
        bb += y * y / n;
        ab += x * y / n;
    }
    aa -= a * a;
    bb -= b * b;
    ab -= a * b;
    if (aa < EDGES_MIN * EDGES_MIN) {
        return NAN;
    }
    return bb > 0 ? (float)(ab / sqrt(aa * bb)) : 0;
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static float middle_of(float *values, size_t n)
{
    qsort(values, n, sizeof *values, by_value);
    return values[n / 2];
}

/* In the middle one of the parts that have edges: something that hides fewer than half of them does not matter. NaN: none has. */
static float agreement_of(const struct weir_condition_watch *watch, const struct picture *picture)
{
    float values[N_PARTS];
    size_t n = 0;
    for (int i = 0; i < N_PARTS; i++) {
        int at = i / 4 * PART_H * TILES_W + i % 4 * PART_W;
        float value = agreement_in(&watch->edges[at], &picture->edges[at]);
        if (!isnan(value)) {
            values[n++] = value;
        }
    }
    return n == 0 ? NAN : middle_of(values, n);
}

/* ---- what is different from before ---- */

static bool is_same(const struct weir_condition_watch *watch, const uint8_t *grey)
{
    for (size_t i = 0; i < N_PIXELS; i++) {
        if (abs(grey[i] - watch->before[i]) > SAME) {
            return false;
        }
    }
    return watch->has_picture;
}

static void mean_blocks(const uint8_t *grey, float *out)
{
    uint32_t sums[N_BLOCKS] = {0};
    for (size_t i = 0; i < N_PIXELS; i++) {
        size_t row = i / W / WEIR_CONDITION_BLOCK, col = i % W / WEIR_CONDITION_BLOCK;
        sums[row * WEIR_CONDITION_COLS + col] += grey[i];
    }
    for (size_t i = 0; i < N_BLOCKS; i++) {
        out[i] = (float)sums[i] / (WEIR_CONDITION_BLOCK * WEIR_CONDITION_BLOCK);
    }
}

/* The factor that most blocks have become brighter by: the light has changed, or the camera's exposure. */
static float middle_factor(const float *blocks, const float *before)
{
    float factors[N_BLOCKS];
    for (size_t i = 0; i < N_BLOCKS; i++) {
        factors[i] = (blocks[i] + 1) / (before[i] + 1);
    }
    return middle_of(factors, N_BLOCKS);
}

/* The share of blocks that differ from the background, which then goes on. */
static float look_for_motion(struct weir_condition_watch *watch, const uint8_t *grey,
                             int64_t passed_ms)
{
    float blocks[N_BLOCKS];
    size_t n_changed = 0, n_looked_at = 0;
    mean_blocks(grey, blocks);
    if (!watch->has_picture) {
        memcpy(watch->blocks, blocks, sizeof blocks);
    }
    float factor = middle_factor(blocks, watch->blocks);
    float gain = 1 - expf(-(float)passed_ms / BACKGROUND_MS);
    for (size_t i = 0; i < N_BLOCKS; i++) {
        bool is_changed = fabsf(blocks[i] - factor * watch->blocks[i]) > watch->options.changed;
        n_looked_at += !watch->is_masked[i];
        n_changed += !watch->is_masked[i] && is_changed;
        watch->blocks[i] += gain * (blocks[i] - watch->blocks[i]);
    }
    return n_looked_at == 0 ? 0 : (float)n_changed / (float)n_looked_at;
}

/* ---- what is said ---- */

static enum weir_condition_kind kind_of(const struct weir_condition_watch *watch,
                                        const struct picture *picture,
                                        const struct weir_condition *condition)
{
    const struct weir_condition_options *options = &watch->options;

    bool is_soft = condition->sharpness < options->min_sharpness;

    const struct {
        bool holds;
        enum weir_condition_kind kind;
    } rules[] = {
        {picture->dark > options->max_clipped, WEIR_CONDITION_BLACK},
        {picture->white > options->max_clipped, WEIR_CONDITION_DAZZLED},
        {options->frozen_ms > 0 && watch->same_ms >= options->frozen_ms, WEIR_CONDITION_FROZEN},
        {is_soft && condition->agreement < COVERED * options->min_agreement,
         WEIR_CONDITION_COVERED},
        {is_soft, WEIR_CONDITION_BLURRED},
        {condition->agreement < options->min_agreement, WEIR_CONDITION_MOVED},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(rules); i++) {
        if (rules[i].holds) {
            return rules[i].kind;
        }
    }
    return WEIR_CONDITION_WELL;
}

/* The past goes on with a picture that is well: at first as the mean of all, then slowly. */
static void learn(struct weir_condition_watch *watch, const struct picture *picture,
                  int64_t passed_ms)
{
    bool is_first = !watch->has_past;
    watch->has_past = true;
    watch->learnt_ms = WEIR_MIN(watch->learnt_ms + passed_ms, INT32_MAX);
    float span_ms = WEIR_MIN((float)watch->learnt_ms, FOLLOW_MS);
    float gain = is_first ? 1 : (float)passed_ms / WEIR_MAX(span_ms, 1);
    gain = WEIR_MIN(gain, 1);
    watch->sharpness += gain * (picture->sharpness - watch->sharpness);
    for (size_t i = 0; i < N_TILES; i++) {
        watch->edges[i] += gain * (picture->edges[i] - watch->edges[i]);
    }
}

static bool is_of_place(enum weir_condition_kind kind)
{
    return kind >= WEIR_CONDITION_COVERED;
}

static void go_on(struct spell *spell, enum weir_condition_kind kind, bool is_alike,
                  int64_t time_ms, int64_t passed_ms)
{
    spell->ms = is_alike ? spell->ms + passed_ms : 0;
    spell->since_ms = is_alike ? spell->since_ms : time_ms;
    spell->kind = kind;
}

/* Say a kind when it has lasted. Pictures of a place that is gone may look covered, blurred and moved in turn: together they last.
 * @return Whether another is said now. */
static bool hold(struct weir_condition_watch *watch, enum weir_condition_kind kind, int64_t time_ms,
                 int64_t passed_ms)
{
    const struct weir_condition_options *options = &watch->options;
    bool is_place = is_of_place(kind);
    go_on(&watch->next, kind, kind == watch->next.kind, time_ms, passed_ms);
    go_on(&watch->place, kind, is_place == is_of_place(watch->place.kind), time_ms, passed_ms);
    const struct spell *spell =
        is_place && !is_of_place(watch->said) ? &watch->place : &watch->next;
    int64_t hold_ms = is_place ? options->place_ms : options->hold_ms;
    hold_ms = kind == WEIR_CONDITION_FROZEN ? 0 : hold_ms;
    if (kind == watch->said || spell->ms < hold_ms) {
        return false;
    }
    watch->said = kind;
    watch->said_since_ms = spell->since_ms;
    return true;
}

struct weir_condition weir_condition_look(struct weir_condition_watch *watch, int64_t time_ms,
                                          const uint8_t *grey)
{
    struct picture picture;
    double variance;
    int64_t passed_ms = weir_frame_clock_step(&watch->clock, time_ms);
    if (!watch->has_picture) {
        watch->said_since_ms = watch->next.since_ms = watch->place.since_ms = time_ms;
    }
    count_greys(grey, &watch->options, &picture, &variance);
    find_edges(grey, variance, &picture);
    watch->same_ms = is_same(watch, grey) ? WEIR_MIN(watch->same_ms + passed_ms, INT32_MAX) : 0;
    bool is_learnt = watch->learnt_ms >= watch->options.learn_ms;
    struct weir_condition condition = {
        .motion = look_for_motion(watch, grey, passed_ms),
        .brightness = picture.brightness,
        .sharpness = is_learnt && watch->sharpness > 0 ? picture.sharpness / watch->sharpness : NAN,
        .agreement = is_learnt ? agreement_of(watch, &picture) : NAN,
    };
    enum weir_condition_kind kind = kind_of(watch, &picture, &condition);
    condition.has_changed = hold(watch, kind, time_ms, passed_ms);
    if (kind == WEIR_CONDITION_WELL) {
        learn(watch, &picture, passed_ms);
    }
    memcpy(watch->before, grey, N_PIXELS);
    watch->has_picture = true;
    condition.is_moving = condition.motion >= watch->options.min_motion && condition.motion > 0;
    condition.kind = watch->said;
    condition.reason = kinds[watch->said].reason;
    condition.since_ms = watch->said_since_ms;
    return condition;
}
