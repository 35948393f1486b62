/** Options of the source "directory". */
#ifndef WEIR_ENDPOINT_SOURCE_DIRECTORY_H
#define WEIR_ENDPOINT_SOURCE_DIRECTORY_H

struct weir_source_directory {
    char *path; /**< <path>/<camera>/<number>.<anything> */
};

#endif
