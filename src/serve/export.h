/**
 * `weir-worker export FILE -o OUT.onnx`: a model that Weir trained, as ONNX for other programs
 * (nn/onnx_file.h). The file carries labels, picture rule and kind of output too, so that Weir takes
 * it back as it was.
 */
#ifndef WEIR_SERVE_EXPORT_H
#define WEIR_SERVE_EXPORT_H

#include "base/status.h"

/**
 * Writes a net file as an ONNX file, atomically.
 * @return As weir_net_file_open and weir_net_file_export_onnx; what weir_file_write_atomic returns.
 */
weir_status weir_serve_export(const char *path, const char *out_path,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** @return Exit status: 0, or that of the error (weir_status_exit). */
int weir_export_main(int argc, char **argv);

#endif
