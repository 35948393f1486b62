#include "zoo_write.h"

#include <stdarg.h>
#include <stdio.h>

void zoo_begin(struct weir_buf *out, const char *name, const struct weir_shape *shape)
{
    (void)weir_buf_printf(out, "{\"name\":\"%s\",\"input\":[%d,%d,%d],\"layers\":[", name, shape->c,
                          shape->h, shape->w);
}

void zoo_layer(struct weir_buf *out, const char *name, const char *type, const char *fmt, ...)
{
    char settings[256];
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(settings, sizeof settings, fmt, args);
    va_end(args);
    if (len < 0 || len >= (int)sizeof settings) {
        out->status = WEIR_ERR_INTERNAL;
        return;
    }
    bool is_first = out->len == 0 || out->data[out->len - 1] == '[';
    (void)weir_buf_printf(out, "%s{\"name\":\"%s\",\"type\":\"%s\"%s}", is_first ? "" : ",", name,
                          type, settings);
}

void zoo_plain(struct weir_buf *out, const char *name, const char *type)
{
    zoo_layer(out, name, type, "%s", "");
}

void zoo_end_softmax(struct weir_buf *out)
{
    (void)weir_buf_puts(out, "],\"loss\":{\"type\":\"softmax\"}}");
}

struct zoo_name zoo_inside(const char *block, const char *part)
{
    struct zoo_name name;
    (void)snprintf(name.text, sizeof name.text, "%s.%s", block, part);
    return name;
}

struct zoo_name zoo_numbered(const char *stem, int n)
{
    struct zoo_name name;
    (void)snprintf(name.text, sizeof name.text, "%s%d", stem, n);
    return name;
}

struct zoo_name zoo_conv(struct weir_buf *out, struct zoo_name name, struct zoo_name from, int k,
                         int kernel, int stride)
{
    zoo_layer(out, name.text, "conv",
              ",\"from\":\"%s\",\"k\":%d,\"kernel\":%d,\"stride\":%d,\"pad\":%d,\"bias\":false",
              from.text, k, kernel, stride, kernel / 2);
    return name;
}

struct zoo_name zoo_concat(struct weir_buf *out, struct zoo_name name, const struct zoo_name *parts,
                           int n)
{
    char list[ZOO_MAX_CONCAT * (sizeof parts->text + 3)] = "";
    size_t len = 0;
    for (int i = 0; i < n; i++) {
        len += (size_t)snprintf(list + len, sizeof list - len, "%s\"%s\"", i == 0 ? "" : ",",
                                parts[i].text);
    }
    zoo_layer(out, name.text, "concat", ",\"from\":[%s]", list);
    return name;
}
