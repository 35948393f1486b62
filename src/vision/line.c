#include "vision/line.h"

#include "base/macros.h"
#include "vision/zone.h"

#include <math.h>
#include <stdlib.h>

/* Where a track was last on one of the sides. */
struct stand {
    uint64_t track;
    bool is_known;
    float x, y;
};

struct weir_crossings {
    struct weir_line line;
    bool is_by_foot;
    struct stand stands[2][WEIR_TRACKS_MAX]; /* By id; those of this frame and of the one before. */
    size_t n_stands, i_now;
    struct weir_crossing found[WEIR_TRACKS_MAX];
};

static double length(const struct weir_line *line)
{
    return hypot((double)line->bx - (double)line->ax, (double)line->by - (double)line->ay);
}

weir_status weir_line_check(const struct weir_line *line, struct weir_error *err)
{
    const float values[] = {line->ax, line->ay, line->bx, line->by};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(values); i++) {
        if (!(values[i] >= 0 && values[i] <= 1)) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "point %zu of the line has %g: give shares of the picture's "
                                  "width and height, 0 to 1",
                                  i / 2 + 1, (double)values[i]);
        }
    }
    return length(line) > 2 * (double)WEIR_LINE_MARGIN
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "the line's two points are one: give its two ends");
}

weir_status weir_crossings_create(const struct weir_line *line, bool is_by_foot,
                                  struct weir_crossings **out, struct weir_error *err)
{
    WEIR_TRY(weir_line_check(line, err));
    struct weir_crossings *crossings = calloc(1, sizeof *crossings);
    if (crossings == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for who crosses a line");
    }
    crossings->line = *line;
    crossings->is_by_foot = is_by_foot;
    *out = crossings;
    return WEIR_OK;
}

void weir_crossings_destroy(struct weir_crossings *crossings)
{
    free(crossings);
}

/* How far to the right of the line: y grows downwards. */
static double right_of(const struct weir_line *line, float x, float y)
{
    double dx = (double)line->bx - (double)line->ax, dy = (double)line->by - (double)line->ay;
    return (dx * ((double)y - (double)line->ay) - dy * ((double)x - (double)line->ax)) /
           length(line);
}

/* Does the way from where it stood lead between the line's ends? The two are on different sides. */
static bool passes_between(const struct weir_line *line, const struct stand *from, float x, float y)
{
    double before = right_of(line, from->x, from->y), now = right_of(line, x, y);
    double share = before / (before - now);
    double at_x = (double)from->x + share * ((double)x - (double)from->x);
    double at_y = (double)from->y + share * ((double)y - (double)from->y);
    double dx = (double)line->bx - (double)line->ax, dy = (double)line->by - (double)line->ay;
    double along =
        ((at_x - (double)line->ax) * dx + (at_y - (double)line->ay) * dy) / (dx * dx + dy * dy);
    return along >= 0 && along <= 1;
}

/* A track in this frame, and where it stood. @return Whether it has crossed. */
static bool move(struct weir_crossings *crossings, const struct weir_track *track,
                 const float point[2], struct stand *stand)
{
    const struct weir_line *line = &crossings->line;
    double side = right_of(line, point[0], point[1]);
    if (fabs(side) < (double)WEIR_LINE_MARGIN) {
        return false;
    }
    bool has_crossed = stand->is_known && (right_of(line, stand->x, stand->y) > 0) != (side > 0) &&
                       passes_between(line, stand, point[0], point[1]);
    *stand = (struct stand){.track = track->id, .is_known = true, .x = point[0], .y = point[1]};
    return has_crossed;
}

size_t weir_crossings_step(struct weir_crossings *crossings, int width, int height,
                           struct weir_track *const *tracks, size_t n,
                           const struct weir_crossing **out)
{
    const struct stand *before = crossings->stands[crossings->i_now];
    struct stand *now = crossings->stands[1 - crossings->i_now];
    size_t n_found = 0, i_before = 0;
    n = WEIR_MIN(n, WEIR_TRACKS_MAX);
    for (size_t i = 0; i < n; i++) {
        float point[2];
        while (i_before < crossings->n_stands && before[i_before].track < tracks[i]->id) {
            i_before++;
        }
        bool is_same = i_before < crossings->n_stands && before[i_before].track == tracks[i]->id;
        now[i] = is_same ? before[i_before] : (struct stand){.track = tracks[i]->id};
        weir_zone_point(&tracks[i]->last, crossings->is_by_foot, width, height, point);
        if (move(crossings, tracks[i], point, &now[i])) {
            crossings->found[n_found++] = (struct weir_crossing){
                tracks[i]->id, right_of(&crossings->line, point[0], point[1]) > 0};
        }
    }
    crossings->i_now = 1 - crossings->i_now;
    crossings->n_stands = n;
    *out = crossings->found;
    return n_found;
}
