/** What a net file says of pictures and classes, as the texts that a signature is made of. */
#ifndef WEIR_SERVE_NET_TEXTS_H
#define WEIR_SERVE_NET_TEXTS_H

#include "base/arena.h"
#include "nn/net_file.h"

struct net_texts {
    const char *picture;     /**< "weir.picture": JSON. */
    const char *labels;      /**< "weir.labels": a JSON array; NULL: the outputs have no names. */
    const char *output_kind; /**< "weir.output_kind". */
};

struct net_texts net_texts_make(const struct weir_net_file *file, struct weir_arena *arena);

#endif
