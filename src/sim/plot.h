/**
 * Plots for a page: curves are SVG that stretches with the page; labels are HTML beside it, which
 * keep their size on any screen.
 */
#ifndef WEIR_SIM_PLOT_H
#define WEIR_SIM_PLOT_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

struct plot_curve {
    const char *name;
    const double *x, *y;
    size_t n;
    bool is_step;   /**< y holds until the next x. */
    bool is_filled; /**< Down to 0. */
};

struct plot {
    const char *title, *about;
    const char *y_unit;
    double x_max, y_max;
    bool is_log_x; /**< x from 1 to x_max, in seconds; else seconds from 0. */
    double mark;   /**< A horizontal line at this y; 0 = none. */
    const char *mark_name;
    const struct plot_curve *curves;
    size_t n_curves;
};

/** Text as HTML: what has a meaning there is escaped. */
void plot_escape(const char *text, struct weir_buf *out);

void plot_print(const struct plot *plot, struct weir_buf *out);

#endif
