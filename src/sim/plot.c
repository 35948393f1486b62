#include "sim/plot.h"

#include "base/macros.h"

#include <math.h>

#define WIDTH   1000.0
#define HEIGHT  300.0
#define N_LINES 4 /**< Horizontal lines. */

void plot_escape(const char *text, struct weir_buf *out)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '&':
            (void)weir_buf_puts(out, "&amp;");
            break;
        case '<':
            (void)weir_buf_puts(out, "&lt;");
            break;
        case '>':
            (void)weir_buf_puts(out, "&gt;");
            break;
        case '"':
            (void)weir_buf_puts(out, "&quot;");
            break;
        default:
            (void)weir_buf_append(out, text, 1);
        }
    }
}

/** A number that reads well, at least `value`. */
static double round_up(double value)
{
    static const double well[] = {1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8};
    double power = pow(10, floor(log10(WEIR_MAX(value, 1e-9)))), rest = value / power;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(well); i++) {
        if (rest <= well[i] * (1 + 1e-9)) {
            return power * well[i];
        }
    }
    return power * 10;
}

static double x_of(const struct plot *plot, double x)
{
    if (plot->is_log_x) {
        return WIDTH * log(WEIR_MAX(x, 1)) / log(WEIR_MAX(plot->x_max, 2));
    }
    return WIDTH * x / WEIR_MAX(plot->x_max, 1e-9);
}

static double y_of(double y, double y_max)
{
    return HEIGHT * (1 - WEIR_MIN(y, y_max) / y_max);
}

static void print_curve(const struct plot *plot, const struct plot_curve *curve, size_t index,
                        double y_max, struct weir_buf *out)
{
    double last_x = 0;
    (void)weir_buf_printf(out, "<path class=\"c%zu%s\" d=\"", index,
                          curve->is_filled ? " filled" : "");
    for (size_t i = 0; i < curve->n; i++) {
        double x = x_of(plot, curve->x[i]), y = y_of(curve->y[i], y_max);
        if (i == 0) {
            (void)weir_buf_printf(out, curve->is_filled ? "M%.1f,%.1fL%.1f,%.1f" : "M%.1f,%.1f", x,
                                  curve->is_filled ? HEIGHT : y, x, y);
        } else if (curve->is_step) {
            (void)weir_buf_printf(out, "H%.1fV%.1f", x, y);
        } else {
            (void)weir_buf_printf(out, "L%.1f,%.1f", x, y);
        }
        last_x = x;
    }
    if (curve->n > 0 && curve->is_step) {
        (void)weir_buf_printf(out, "H%.1f", WIDTH);
        last_x = WIDTH;
    }
    if (curve->n > 0 && curve->is_filled) {
        (void)weir_buf_printf(out, "L%.1f,%.1fZ", last_x, HEIGHT);
    }
    (void)weir_buf_puts(out, "\"/>\n");
}

static void print_legend(const struct plot *plot, struct weir_buf *out)
{
    (void)weir_buf_puts(out, "<figcaption><b>");
    plot_escape(plot->title, out);
    (void)weir_buf_puts(out, "</b> <span class=\"about\">");
    plot_escape(plot->about, out);
    (void)weir_buf_puts(out, "</span><span class=\"legend\">");
    for (size_t i = 0; i < plot->n_curves; i++) {
        (void)weir_buf_printf(out, "<span><i class=\"k%zu\"></i>", i);
        plot_escape(plot->curves[i].name, out);
        (void)weir_buf_puts(out, "</span>");
    }
    if (plot->mark > 0) {
        (void)weir_buf_puts(out, "<span><i class=\"kmark\"></i>");
        plot_escape(plot->mark_name, out);
        (void)weir_buf_puts(out, "</span>");
    }
    (void)weir_buf_puts(out, "</span></figcaption>\n");
}

/** Moments under the plot: round numbers of the unit that fits. */
static void print_x_labels(const struct plot *plot, struct weir_buf *out)
{
    static const struct {
        double at;
        const char *name;
    } log_ticks[] = {{1, "1 s"},     {60, "1 min"},    {3600, "1 h"},
                     {86400, "1 d"}, {864000, "10 d"}, {8640000, "100 d"}};

    static const double units[] = {1, 60, 3600, 86400};
    (void)weir_buf_puts(out, "<div class=\"x\">");
    if (plot->is_log_x) {
        for (size_t i = 0; i < WEIR_ARRAY_LEN(log_ticks) && log_ticks[i].at <= plot->x_max; i++) {
            (void)weir_buf_printf(out, "<span style=\"left:%.2f%%\">%s</span>",
                                  x_of(plot, log_ticks[i].at) / WIDTH * 100, log_ticks[i].name);
        }
    } else {
        double unit = units[0];
        for (size_t i = 0; i < WEIR_ARRAY_LEN(units) && plot->x_max >= 3 * units[i]; i++) {
            unit = units[i];
        }
        double step = round_up(plot->x_max / unit / 5) * unit;
        for (double x = 0; x <= plot->x_max * 1.001; x += step) {
            (void)weir_buf_printf(out, "<span style=\"left:%.2f%%\">%g %s</span>",
                                  x_of(plot, x) / WIDTH * 100, x / unit,
                                  unit >= 86400  ? "d"
                                  : unit >= 3600 ? "h"
                                  : unit >= 60   ? "min"
                                                 : "s");
        }
    }
    (void)weir_buf_puts(out, "</div>\n");
}

void plot_print(const struct plot *plot, struct weir_buf *out)
{
    double y_max = round_up(WEIR_MAX(plot->y_max, plot->mark) / N_LINES) * N_LINES;
    (void)weir_buf_puts(out, "<figure>\n");
    print_legend(plot, out);
    (void)weir_buf_puts(out, "<div class=\"plot\"><div class=\"y\">");
    for (int i = 0; i <= N_LINES; i++) {
        (void)weir_buf_printf(out, "<span style=\"top:%d%%\">%g%s</span>", 100 * i / N_LINES,
                              y_max * (N_LINES - i) / N_LINES, i == 0 ? plot->y_unit : "");
    }
    (void)weir_buf_printf(out,
                          "</div>\n<svg viewBox=\"0 0 %.0f %.0f\" preserveAspectRatio=\"none\" "
                          "role=\"img\" aria-label=\"",
                          WIDTH, HEIGHT);
    plot_escape(plot->title, out);
    (void)weir_buf_puts(out, "\">\n");
    for (int i = 0; i <= N_LINES; i++) {
        double y = HEIGHT * i / N_LINES;
        (void)weir_buf_printf(out, "<path class=\"grid\" d=\"M0,%.1fH%.0f\"/>\n", y, WIDTH);
    }
    for (size_t i = 0; i < plot->n_curves; i++) {
        print_curve(plot, &plot->curves[i], i, y_max, out);
    }
    if (plot->mark > 0) {
        (void)weir_buf_printf(out, "<path class=\"mark\" d=\"M0,%.1fH%.0f\"/>\n",
                              y_of(plot->mark, y_max), WIDTH);
    }
    (void)weir_buf_puts(out, "</svg>\n");
    print_x_labels(plot, out);
    (void)weir_buf_puts(out, "</div>\n</figure>\n");
}
