/**
 * Words of a container's command, as Kubernetes reads them: $(NAME) is a variable of the container, $$ is a dollar, and a
 * name that is none stays as it is. A variable that only the task knows (a secret, its rank) is left to a shell, which is
 * then started in front of the program; so is the folder that the program begins in.
 */
#ifndef WEIR_KUBEFLOW_EXPAND_H
#define WEIR_KUBEFLOW_EXPAND_H

#include "kubeflow/reading.h"

/** Most bytes of one text with its variables filled in. */
#define KUBEFLOW_EXPANDED_MAX ((size_t)256 << 10)

/** Variables of a container. */
struct kubeflow_variables {
    const json_t *env;     /**< {NAME: value} */
    const json_t *secrets; /**< {NAME: name of the secret} */
};

/** A text of which all is known. @return UNSUPPORTED: it has a variable that only the task knows; LIMIT. */
weir_status kubeflow_expand(struct kubeflow_reading *reading, struct kubeflow_place at,
                            const struct kubeflow_variables *variables, const char *text,
                            const char **out) WEIR_MUST_CHECK;

/**
 * What is started: the words, or a shell with them.
 * @param lists  Two lists of texts, of which the second follows the first; marked.
 * @param dir    Folder to begin in; NULL: the task's.
 * @param out    A value that is kept, an array of texts; empty: there are no words.
 */
weir_status kubeflow_expand_words(struct kubeflow_reading *reading,
                                  const struct kubeflow_place lists[2], const char *dir,
                                  const struct kubeflow_variables *variables,
                                  json_t **out) WEIR_MUST_CHECK;

#endif
