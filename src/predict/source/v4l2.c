#include "predict/camera_source.h"

const struct source_ops source_v4l2 = CAMERA_SOURCE_OPS;
