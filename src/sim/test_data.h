/** Tests: where the published traces are. */
#ifndef WEIR_SIM_TEST_DATA_H
#define WEIR_SIM_TEST_DATA_H

#include <stdio.h>
#include <stdlib.h>

/** A file of the published traces; one that cannot be opened if there are none here. */
static inline char *data_path(const char *name)
{
    static char path[4096];
    const char *root = getenv("WEIR_SHARED_DATA");
    (void)snprintf(path, sizeof path, "%s/scheduler/%s", root == NULL ? "." : root, name);
    return path;
}

#endif
