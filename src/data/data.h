/**
 * data: from image files to training batches, the same batches on any number of workers.
 *
 * Six nouns, each with its own header:
 *   image    decoded 8-bit picture; PGM, PPM, PNG and JPEG in and out; resize, crop      image.h
 *   dataset  labelled pictures: a folder per class, an IDX pair, or a list                dataset.h
 *   order    which sample comes at which position: a pure function                        order.h
 *   augment  which random change a sample gets in an epoch: a pure function               augment.h
 *   scenes   a dataset composed of faces and photographs, for detectors                   scenes.h
 *   loader   threads that decode ahead and hand out finished batches                      loader.h
 *
 * The life of a training worker:
 *
 *     struct weir_dataset *dataset;
 *     WEIR_TRY(weir_dataset_open("faces", &(struct weir_dataset_options){0}, &dataset, err));
 *     struct weir_loader_config config = {
 *         .input = {.c = 1, .h = 64, .w = 56, .mean = {0.5f}, .std = {0.25f}},
 *         .batch = 32, .rank = rank, .size = size, .seed = 1, .shuffle = true,
 *         .augment = WEIR_AUGMENT_FACE, .n_threads = 2, .depth = 4};
 *     struct weir_loader *loader;
 *     WEIR_TRY(weir_loader_create(dataset, &config, &loader, err));
 *     struct weir_batch batch;
 *     while (weir_loader_next(loader, &batch, err) == WEIR_OK) { … batch.images, batch.labels … }
 *     weir_loader_destroy(loader);
 *     weir_dataset_close(dataset);
 *
 * Two promises hold everywhere. The pixels of a batch depend on (dataset, seed, epoch, position)
 * and on nothing else: not on threads, restarts or the number of workers. And nothing that a file
 * can contain crashes or hangs the process: a damaged file is an error that names it.
 *
 * Shapes: pictures are H rows of W pixels of C interleaved bytes (HWC); tensors are C×H×W floats.
 * Errors: functions return WEIR_ERR_NOMEM when memory is out and never abort.
 */
#ifndef WEIR_DATA_DATA_H
#define WEIR_DATA_DATA_H

#include "data/augment.h"
#include "data/dataset.h"
#include "data/image.h"
#include "data/loader.h"
#include "data/order.h"
#include "data/scenes.h"

#endif
