#include "predict/left.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"
#include "predict/outbox.h"
#include "predict/pictures.h"
#include "predict/refused.h"
#include "predict/shipper.h"

#include <stdio.h>
#include <stdlib.h>

#define PATH_BYTES 4300

struct one {
    struct predict_spec spec; /* of the replica, with the folder of before */
    struct outbox *outbox;
    struct pictures *pictures;
    struct refused *refused;
    struct consumer *shipper;
};

struct left {
    struct one items[PREDICT_LEFT_MAX];
    size_t n;
};

static void ignore_durable(void *context, void *const *tickets, size_t n)
{
    (void)context;
    (void)tickets;
    (void)n;
}

static void close_one(struct one *one)
{
    outbox_close(one->outbox);
    pictures_close(one->pictures);
    refused_close(one->refused);
}

static weir_status open_one(struct one *one, struct weir_error *err)
{
    char dir[PATH_BYTES], images[PATH_BYTES];
    (void)snprintf(dir, sizeof dir, "%s/outbox", one->spec.host.dir);
    (void)snprintf(images, sizeof images, "%s/images", one->spec.host.dir);
    if (!weir_path_is_dir(dir)) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "there is no %s", dir);
    }
    WEIR_TRY(pictures_open(images, PICTURES_MAX, &one->pictures, err));
    const struct outbox_config config = {
        .dir = dir, .n_remembered = 1, .on_durable = ignore_durable, .pictures = one->pictures};
    WEIR_TRY(outbox_open(&config, &one->outbox, err));
    one->refused = refused_open(one->spec.host.dir);
    return shipper_start(&one->spec, one->outbox, one->pictures, one->refused, &one->shipper, err);
}

struct left *left_start(const struct predict_spec *spec)
{
    struct left *left = weir_xalloc(sizeof *left);
    left->n = 0;
    for (size_t i = 0; i < spec->n_left; i++) {
        struct weir_error err;
        struct one *one = &left->items[left->n];
        *one = (struct one){.spec = *spec};
        one->spec.host.dir = spec->left[i];
        if (open_one(one, &err) == WEIR_OK) {
            left->n++;
            weir_log(WEIR_LOG_INFO, "left_decisions_taken",
                     WEIR_KV_STR("from", one->spec.host.dir));
        } else {
            close_one(one);
            weir_log(WEIR_LOG_DEBUG, "left_decisions_not_taken",
                     WEIR_KV_STR("reason", err.message));
        }
    }
    return left;
}

void left_stop(struct left *left, int64_t grace_ms)
{
    for (size_t i = 0; left != NULL && i < left->n; i++) {
        consumers_stop(&left->items[i].shipper, 1, grace_ms);
        close_one(&left->items[i]);
    }
    free(left);
}
