#include "predict/camera_source.h"

const struct source_ops source_video = CAMERA_SOURCE_OPS;
