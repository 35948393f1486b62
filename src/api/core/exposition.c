#include "api/core/exposition.h"

#include <math.h>
#include <string.h>

void exposition_begin(struct exposition *x, size_t max_bytes)
{
    *x = (struct exposition){0};
    weir_buf_init(&x->buf, max_bytes);
}

void exposition_family(struct exposition *x, const char *name, const char *type, const char *help)
{
    x->name = name;
    x->n_samples = 0;
    (void)weir_buf_printf(&x->buf, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_value_text(struct weir_buf *buf, const char *text)
{
    for (; text != NULL && *text != '\0'; text++) {
        if (*text == '\n') {
            (void)weir_buf_puts(buf, "\\n");
        } else if (*text == '\\' || *text == '"') {
            (void)weir_buf_append(buf, (const char[]){'\\', *text}, 2);
        } else {
            (void)weir_buf_append(buf, text, 1);
        }
    }
}

static void put_number(struct weir_buf *buf, double value)
{
    if (isnan(value)) {
        (void)weir_buf_puts(buf, " NaN\n");
    } else if (isinf(value)) {
        (void)weir_buf_puts(buf, value > 0 ? " +Inf\n" : " -Inf\n");
    } else {
        (void)weir_buf_printf(buf, " %.15g\n", value);
    }
}

void exposition_sample(struct exposition *x, const char *labels, const char *const *values,
                       double value)
{
    if (x->n_samples == EXPOSITION_SAMPLES_MAX) {
        x->n_left_out++;
        return;
    }
    x->n_samples++;
    (void)weir_buf_puts(&x->buf, x->name);
    for (size_t i = 0; *labels != '\0'; i++) {
        size_t len = strcspn(labels, " ");
        (void)weir_buf_printf(&x->buf, "%s%.*s=\"", i == 0 ? "{" : ",", (int)len, labels);
        put_value_text(&x->buf, values[i]);
        labels += len + (labels[len] == ' ');
        (void)weir_buf_puts(&x->buf, *labels == '\0' ? "\"}" : "\"");
    }
    put_number(&x->buf, value);
}
