#include "predict/camera_source.h"

const struct source_ops source_mjpeg = CAMERA_SOURCE_OPS;
