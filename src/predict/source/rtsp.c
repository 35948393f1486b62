#include "predict/camera_source.h"

const struct source_ops source_rtsp = CAMERA_SOURCE_OPS;
