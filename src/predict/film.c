#include "predict/film.h"

#include <string.h>

void film_init(struct film *film)
{
    *film = (struct film){.stride = 1, .worth = -1};
}

void film_fini(struct film *film)
{
    for (size_t i = 0; i < film->n; i++) {
        weir_image_fini(&film->frames[i].picture);
    }
}

struct film_frame *film_best(struct film *film)
{
    return film->n > 0 ? &film->frames[film->i_best] : NULL;
}

static bool is_even(const struct film *film, int64_t number)
{
    return number % film->stride == 0;
}

static void drop(struct film *film, size_t i)
{
    weir_image_fini(&film->frames[i].picture);
    film->n--;
    memmove(&film->frames[i], &film->frames[i + 1], (film->n - i) * sizeof film->frames[0]);
    film->i_best -= film->i_best > i;
}

/* Those that stay only for being in the order go, if it is not theirs any more; the best stays. */
static void thin(struct film *film)
{
    for (size_t i = film->n; i-- > 0;) {
        if (i != film->i_best && !is_even(film, film->frames[i].number)) {
            drop(film, i);
        }
    }
}

static size_t count_even(const struct film *film)
{
    size_t n = 0;
    for (size_t i = 0; i < film->n; i++) {
        n += is_even(film, film->frames[i].number);
    }
    return n;
}

/* Is there a place for the next frame in the order? With a doubled stride it would be between two. */
static bool has_room(const struct film *film)
{
    return is_even(film, film->n_seen) && count_even(film) < FILM_FRAMES - 1;
}

bool film_wants(const struct film *film, double worth)
{
    return has_room(film) || worth > film->worth;
}

void film_add(struct film *film, const struct film_frame *frame, double worth)
{
    struct film_frame kept = *frame;
    kept.number = film->n_seen;
    bool is_best = worth > film->worth, is_kept = film_wants(film, worth);
    if (is_even(film, kept.number) && !has_room(film)) {
        film->stride *= 2;
        thin(film);
    }
    film->n_seen++;
    if (!is_kept) {
        weir_image_fini(&kept.picture);
        return;
    }
    if (is_best && film->n > 0 && !is_even(film, film->frames[film->i_best].number)) {
        drop(film, film->i_best);
    }
    film->frames[film->n] = kept;
    film->i_best = is_best ? film->n : film->i_best;
    film->worth = is_best ? worth : film->worth;
    film->n++;
}

size_t film_bytes(const struct film *film)
{
    size_t n = 0;
    for (size_t i = 0; i < film->n; i++) {
        const struct weir_image *picture = &film->frames[i].picture;
        n += (size_t)picture->width * (size_t)picture->height * (size_t)picture->channels;
    }
    return n;
}
