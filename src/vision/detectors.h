/** The kinds of detectors: what a model's outputs are, so that boxes can be made of them. */
#ifndef WEIR_VISION_DETECTORS_H
#define WEIR_VISION_DETECTORS_H

#include "base/kind.h"

/** centernet, yunet, scrfd, retinaface, yolo … (vision/detectors.def). Its common options say how the model's input is made. */
extern const struct weir_registry weir_detectors;

#endif
