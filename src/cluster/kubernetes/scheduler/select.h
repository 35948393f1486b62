/** Selectors of Kubernetes: which labels they match. Pure. For the scheduler's own files. */
#ifndef WEIR_CLUSTER_KUBERNETES_SELECT_H
#define WEIR_CLUSTER_KUBERNETES_SELECT_H

#include "base/arena.h"
#include "base/json.h"
#include "sched/snapshot.h"

/** Labels of an object, in its digest's arena. */
struct select_labels {
    const struct weir_sched_label *rows;
    int32_t n;
};

enum select_operator {
    SELECT_IN,
    SELECT_NOT_IN,
    SELECT_EXISTS,
    SELECT_DOES_NOT_EXIST,
    SELECT_GREATER,
    SELECT_LESS,
};

struct select_requirement {
    const char *key;
    enum select_operator is;
    const char **values;
    size_t n_values;
};

/** All of its requirements; none: it matches all. */
struct select_all {
    struct select_requirement *rows;
    size_t n;
    bool is_none; /**< It matches nothing, whatever it requires. */
};

/** The labels that an object of texts says. */
struct select_labels select_labels_read(const json_t *object, struct weir_arena *arena);

/** The value of a label; NULL: it is not there. */
const char *select_label(struct select_labels labels, const char *key);

/** A label selector: {"matchLabels", "matchExpressions"}; NULL matches nothing. What is no selector matches nothing. */
struct select_all select_read(const json_t *selector, struct weir_arena *arena);

/** A term of a node selector: {"matchExpressions", "matchFields"}; an empty one matches nothing. The field metadata.name is
 *  a label of that key. */
struct select_all select_read_node_term(const json_t *term, struct weir_arena *arena);

bool select_matches(const struct select_all *all, struct select_labels labels);

#endif
