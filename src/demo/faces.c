#include "demo/faces.h"

#include "base/rng.h"

#include <math.h>
#include <stdbool.h>

/* Eyes with glasses, nose and mouth of anyone lie within. */
#define FEATURES_X 0.85f
#define FEATURES_Y 0.9f

/* Lengths are in units of half the picture's width; the face's centre is (0, 0), y goes down. */
struct identity {
    float width, height, jaw;           /* half axes of the head; how square the chin is */
    float skin, hair, iris;             /* tones, 0 black … 1 white */
    float hairline, hair_side, parting; /* where hair begins, how far it hangs, which side */
    float eye_x, eye_y, eye_size, eye_slant;
    float brow_y, brow_thick, brow_slant, brow_tone;
    float nose_len, nose_width, nose_bridge;
    float mouth_y, mouth_width, lip_upper, lip_lower, lip_tone;
    float ear_size, cheek, beard, moustache;
    bool has_glasses, is_bald;
    float glasses_size;
};

struct photo {
    float roll, yaw, pitch, scale, dx, dy;  /* pose */
    float turn_cos, turn_sin;               /* of roll, by scale */
    float light_x, light_y, ambient, gamma; /* light */
    float smile, open, blink, brow_raise;   /* expression */
    float background;
    bool is_occluded;
    float occluder_x, occluder_y, occluder_r, occluder_tone;
    float noise;
};

static float uniform(struct weir_rng *rng, float lo, float hi)
{
    return lo + (hi - lo) * weir_rng_f32(rng);
}

static float normal(struct weir_rng *rng, float mean, float sd)
{
    return mean + sd * (float)weir_rng_normal(rng);
}

static float sometimes(struct weir_rng *rng, float chance, float lo, float hi)
{
    return weir_rng_f32(rng) < chance ? uniform(rng, lo, hi) : 0.0f;
}

static struct identity identity_of(uint64_t seed, uint32_t person)
{
    struct weir_rng rng;
    weir_rng_init(&rng, seed, (uint64_t)person << 32 | 0xffffffffu);
    struct identity id;
    id.width = uniform(&rng, 0.52f, 0.78f);
    id.height = uniform(&rng, 0.78f, 1.0f);
    id.jaw = uniform(&rng, 1.6f, 3.6f);
    id.skin = uniform(&rng, 0.36f, 0.9f);
    id.hair = uniform(&rng, 0.03f, 0.75f);
    id.iris = uniform(&rng, 0.05f, 0.35f);
    id.hairline = uniform(&rng, -0.78f, -0.4f);
    id.hair_side = uniform(&rng, -0.4f, 1.0f);
    id.parting = uniform(&rng, -0.6f, 0.6f);
    id.eye_x = uniform(&rng, 0.22f, 0.38f);
    id.eye_y = uniform(&rng, -0.22f, 0.0f);
    id.eye_size = uniform(&rng, 0.07f, 0.135f);
    id.eye_slant = uniform(&rng, -0.35f, 0.35f);
    id.brow_y = uniform(&rng, 0.12f, 0.26f);
    id.brow_thick = uniform(&rng, 0.012f, 0.07f);
    id.brow_slant = uniform(&rng, -0.45f, 0.45f);
    id.brow_tone = uniform(&rng, 0.03f, 0.5f);
    id.nose_len = uniform(&rng, 0.2f, 0.45f);
    id.nose_width = uniform(&rng, 0.06f, 0.2f);
    id.nose_bridge = uniform(&rng, 0.015f, 0.07f);
    id.mouth_y = uniform(&rng, 0.4f, 0.6f);
    id.mouth_width = uniform(&rng, 0.14f, 0.36f);
    id.lip_upper = uniform(&rng, 0.015f, 0.07f);
    id.lip_lower = uniform(&rng, 0.02f, 0.09f);
    id.lip_tone = uniform(&rng, 0.4f, 0.95f);
    id.ear_size = uniform(&rng, 0.06f, 0.22f);
    id.cheek = uniform(&rng, 0.0f, 0.25f);
    id.beard = sometimes(&rng, 0.25f, 0.4f, 0.9f);
    id.moustache = sometimes(&rng, 0.25f, 0.4f, 0.9f);
    id.has_glasses = weir_rng_f32(&rng) < 0.3f;
    id.glasses_size = uniform(&rng, 0.15f, 0.2f);
    id.is_bald = weir_rng_f32(&rng) < 0.12f;
    return id;
}

static struct photo photo_of(uint64_t seed, uint32_t person, uint32_t photo)
{
    struct weir_rng rng;
    weir_rng_init(&rng, seed ^ 0x5bd1e995u, (uint64_t)person << 32 | photo);
    struct photo p;
    p.roll = normal(&rng, 0, 0.045f);
    p.yaw = normal(&rng, 0, 0.07f);
    p.pitch = normal(&rng, 0, 0.04f);
    p.scale = normal(&rng, 1.0f, 0.035f);
    p.turn_cos = cosf(p.roll) / p.scale;
    p.turn_sin = sinf(p.roll) / p.scale;
    p.dx = normal(&rng, 0, 0.035f);
    p.dy = normal(&rng, 0.02f, 0.035f);
    p.light_x = normal(&rng, 0, 0.15f);
    p.light_y = normal(&rng, -0.1f, 0.1f);
    p.ambient = uniform(&rng, 0.86f, 1.08f);
    p.gamma = uniform(&rng, 0.85f, 1.18f);
    p.smile = normal(&rng, 0.2f, 0.4f);
    p.open = sometimes(&rng, 0.1f, 0.2f, 0.6f);
    p.blink = weir_rng_f32(&rng) < 0.04f ? uniform(&rng, 0.5f, 0.9f) : uniform(&rng, 0, 0.2f);
    p.brow_raise = normal(&rng, 0, 0.02f);
    p.background = uniform(&rng, 0.18f, 0.34f);
    p.is_occluded = weir_rng_f32(&rng) < 0.08f;
    p.occluder_x = uniform(&rng, -0.7f, 0.7f);
    p.occluder_y = uniform(&rng, 0.5f, 1.0f);
    p.occluder_r = uniform(&rng, 0.12f, 0.25f);
    p.occluder_tone = uniform(&rng, 0.2f, 0.8f);
    p.noise = uniform(&rng, 0.006f, 0.02f);
    return p;
}

/* 1 inside (d < 0), 0 outside, with an edge of width `soft`. */
static float coverage(float d, float soft)
{
    float t = (d + soft) / (2 * soft);
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    return 1 - t * t * (3 - 2 * t);
}

static float ellipse(float x, float y, float cx, float cy, float rx, float ry)
{
    float dx = (x - cx) / rx, dy = (y - cy) / ry;
    return (sqrtf(dx * dx + dy * dy) - 1) * (rx < ry ? rx : ry);
}

static float blend(float under, float over, float alpha)
{
    return under + (over - under) * alpha;
}

/* Head, ears and hair: everything behind the features. */
static float draw_head(const struct identity *id, const struct photo *p, float x, float y,
                       float tone)
{
    float neck = fabsf(x) - id->width * 0.55f;
    tone = blend(tone, id->skin * 0.82f, y > 0.5f ? coverage(neck, 0.05f) : 0);
    for (int side = -1; side <= 1; side += 2) {
        float ear = ellipse(x, y, (float)side * (id->width + 0.02f), id->eye_y + 0.12f,
                            id->ear_size * 0.55f, id->ear_size * 1.2f);
        tone = blend(tone, id->skin * 0.88f, coverage(ear, 0.03f));
    }
    if (!id->is_bald) {
        float back = ellipse(x, y, 0, -0.12f, id->width * 1.16f, id->height * 0.98f);
        tone = blend(tone, id->hair, y < id->hair_side ? coverage(back, 0.05f) : 0);
    }
    /* The chin is a superellipse: its exponent is the person's jaw. */
    float power = y > 0 ? id->jaw : 2.0f;
    float shape = powf(fabsf(x) / id->width, power) + powf(fabsf(y) / id->height, power);
    float face = coverage((powf(shape, 1 / power) - 1) * id->width, 0.03f);
    float lit = id->skin * p->ambient * (1 + p->light_x * x + p->light_y * y - 0.22f * x * x);
    tone = blend(tone, lit, face);
    float cheek = ellipse(fabsf(x), y, id->width * 0.62f, 0.25f, 0.2f, 0.16f);
    tone = blend(tone, tone * (1 - id->cheek), face * coverage(cheek, 0.12f));
    if (!id->is_bald) {
        float line = id->hairline + 0.18f * (x - id->parting) * (x - id->parting);
        tone =
            blend(tone, id->hair * (1 + 0.2f * p->light_x * x), face * coverage(y - line, 0.04f));
    }
    if (id->beard > 0) {
        float beard = coverage(0.34f + 0.25f * (1 - fabsf(x) / id->width) - y, 0.08f);
        tone = blend(tone, id->hair, face * beard * id->beard);
    }
    return tone;
}

static float draw_eye(const struct identity *id, const struct photo *p, float x, float y,
                      float side, float yaw, float tone)
{
    float cx = side * id->eye_x + yaw, cy = id->eye_y;
    float slanted = y - side * id->eye_slant * (x - cx) * side;
    float open = id->eye_size * (1 - 0.85f * p->blink);
    float white = coverage(ellipse(x, slanted, cx, cy, id->eye_size * 1.55f, open), 0.018f);
    tone = blend(tone, 0.9f * p->ambient, white);
    float iris = coverage(
        ellipse(x, slanted, cx + yaw * 0.25f, cy, id->eye_size * 0.72f, id->eye_size * 0.85f),
        0.02f);
    tone = blend(tone, id->iris, iris * white);
    float lid = fabsf(ellipse(x, slanted, cx, cy, id->eye_size * 1.6f, open * 1.1f)) - 0.008f;
    tone =
        blend(tone, id->skin * 0.4f, coverage(lid, 0.014f) * (slanted < cy + 0.02f ? 0.9f : 0.35f));
    float brow_y = cy - id->brow_y - p->brow_raise + side * id->brow_slant * (x - cx) * side +
                   0.9f * (x - cx) * (x - cx);
    float brow = fabsf(y - brow_y) - id->brow_thick;
    float ends = fabsf(x - cx) - id->eye_size * 1.9f;
    tone = blend(tone, id->brow_tone, coverage(brow, 0.018f) * coverage(ends, 0.03f) * 0.9f);
    if (id->has_glasses) {
        float rim =
            fabsf(ellipse(x, y, cx, cy + 0.02f, id->glasses_size, id->glasses_size * 0.82f)) -
            0.014f;
        tone = blend(tone, 0.08f, coverage(rim, 0.012f));
    }
    return tone;
}

static float draw_features(const struct identity *id, const struct photo *p, float x, float y,
                           float tone)
{
    float yaw = p->yaw * 0.55f; /* features lie in front of the head's axis */
    tone = draw_eye(id, p, x, y, -1, yaw, tone);
    tone = draw_eye(id, p, x, y, 1, yaw, tone);
    if (id->has_glasses) {
        float bridge = fabsf(y - id->eye_y) - 0.012f;
        tone = blend(tone, 0.08f,
                     coverage(bridge, 0.01f) *
                         coverage(fabsf(x - yaw) - (id->eye_x - id->glasses_size), 0.01f));
    }
    float nose_y = id->eye_y + id->nose_len, nose_x = yaw * 1.35f;
    float ridge = fabsf(x - nose_x - 0.5f * id->nose_bridge) - id->nose_bridge;
    float along = fabsf(y - (id->eye_y + nose_y) / 2) - id->nose_len / 2;
    tone = blend(tone, tone * 0.86f, coverage(ridge, 0.03f) * coverage(along, 0.05f));
    float base = coverage(
        fabsf(ellipse(x, y, nose_x, nose_y - 0.03f, id->nose_width, 0.06f)) - 0.012f, 0.02f);
    tone = blend(tone, id->skin * 0.55f, y > nose_y - 0.03f ? base * 0.8f : 0);
    for (int side = -1; side <= 1; side += 2) {
        float nostril = ellipse(x, y, nose_x + (float)side * id->nose_width * 0.55f, nose_y + 0.01f,
                                id->nose_width * 0.25f, 0.02f);
        tone = blend(tone, id->skin * 0.25f, coverage(nostril, 0.015f));
    }
    float width = id->mouth_width * (1 + 0.12f * p->smile), mx = yaw * 1.1f;
    float curve = id->mouth_y - 0.35f * p->smile * ((x - mx) * (x - mx) - 0.3f * width * width);
    float gap = 0.05f * p->open;
    float upper = fabsf(y - curve + id->lip_upper / 2 + gap) - id->lip_upper / 2;
    float lower = fabsf(y - curve - id->lip_lower / 2 - gap) - id->lip_lower / 2;
    float ends = coverage(fabsf(x - mx) - width, 0.03f);
    tone = blend(tone, id->skin * id->lip_tone * 0.8f, coverage(upper, 0.016f) * ends);
    tone = blend(tone, id->skin * id->lip_tone, coverage(lower, 0.016f) * ends);
    tone = blend(tone, 0.08f, coverage(fabsf(y - curve) - gap - 0.006f, 0.012f) * ends);
    if (id->moustache > 0) {
        float hair = fabsf(y - (nose_y + curve) / 2 - 0.01f) - 0.045f;
        tone = blend(tone, id->hair,
                     coverage(hair, 0.025f) * coverage(fabsf(x - mx) - width * 0.95f, 0.04f) *
                         id->moustache);
    }
    return tone;
}

static float tone_at(const struct identity *id, const struct photo *p, float px, float py)
{
    float x = px - p->dx, y = py - p->dy;
    float fx = p->turn_cos * x + p->turn_sin * y;
    float fy = -p->turn_sin * x + p->turn_cos * y + p->pitch;
    float tone = p->background * (1 + 0.3f * px);
    float shoulders = ellipse(fx, fy, 0, 1.35f, 0.95f, 0.5f);
    tone = blend(tone, 0.3f, coverage(shoulders, 0.06f));
    tone = draw_head(id, p, fx, fy, tone);
    if (fabsf(fx) < FEATURES_X && fy > -FEATURES_Y && fy < FEATURES_Y) {
        tone = draw_features(id, p, fx, fy, tone);
    }
    if (p->is_occluded) {
        float hand =
            ellipse(px, py, p->occluder_x, p->occluder_y, p->occluder_r, p->occluder_r * 1.3f);
        tone = blend(tone, p->occluder_tone, coverage(hand, 0.03f));
    }
    return tone;
}

void face_draw(uint64_t seed, uint32_t person, uint32_t photo,
               uint8_t out[FACE_WIDTH * FACE_HEIGHT])
{
    const struct identity id = identity_of(seed, person);
    const struct photo p = photo_of(seed, person, photo);
    struct weir_rng rng;
    weir_rng_init(&rng, seed ^ 0x9e3779b9u, (uint64_t)person << 32 | photo);
    for (int row = 0; row < FACE_HEIGHT; row++) {
        for (int col = 0; col < FACE_WIDTH; col++) {
            float x = ((float)col + 0.5f) / (FACE_WIDTH / 2.0f) - 1;
            float y = ((float)row + 0.5f - FACE_HEIGHT / 2.0f) / (FACE_WIDTH / 2.0f);
            float tone = tone_at(&id, &p, x, y);
            tone = powf(tone < 0 ? 0 : tone, p.gamma) + p.noise * (float)weir_rng_normal(&rng);
            tone = tone < 0 ? 0 : tone > 1 ? 1 : tone;
            out[row * FACE_WIDTH + col] = (uint8_t)lrintf(tone * 255);
        }
    }
}
