#include "endpoint/source/directory.h"

#include "endpoint/endpoint.h"

static const struct weir_option options[] = {
    WEIR_OPT_JSON(weir_source_directory, path, "path", TEXT,
                  WEIR_OPTION_REQUIRED | WEIR_OPTION_PATH | WEIR_OPTION_WRITTEN, NULL, 0, 0,
                  "Folder on the node, with a folder per camera"),
};

const struct weir_kind weir_source_directory_kind = {
    .name = "directory",
    .doc = "Frames are files PATH/CAMERA/NUMBER.jpg; a file is removed when its decision is "
           "durable. While the replicas are busy the files wait: nothing is dropped.",
    WEIR_KIND_OPTIONS(weir_source_directory, options),
};
