/**
 * Preprocess: a picture becomes a model's input, as the signature's picture rule says.
 *
 * The rule's order: channels, fit, values. Sides are computed as torchvision's Resize and CenterCrop
 * do; resizing is weir_image_resize. A picture that is stretched into planes of FP32 is
 * weir_image_to_tensor's, as Weir's own nets are trained with: values between are not rounded to 8
 * bits. The value v of a channel becomes
 * (v * scale / 255 - mean) / std, rounded to nearest and bounded to 0..255 for UINT8.
 *
 * Threads: any; nothing is shared.
 */
#ifndef WEIR_SERVE_PREPROCESS_H
#define WEIR_SERVE_PREPROCESS_H

#include "signature.h"

#include "data/image.h"

/** Bytes of one image's elements in its input. */
size_t weir_picture_bytes(const struct signature_picture *picture);

/**
 * Writes one image of the input.
 * @param out  weir_picture_bytes of the caller.
 * @return LIMIT: the picture is too narrow for the crop, so that its longer side would be longer
 *         than WEIR_IMAGE_MAX_SIDE; NOMEM.
 */
weir_status weir_picture_fill(const struct signature_picture *picture,
                              const struct weir_image *image, void *out,
                              struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Decodes a JPEG, PNG or PNM, within weir_image_limits_frame, and makes the input of it: a batch of 1
 * where the input has a dimension for it. The caller releases *out.
 *
 * @return UNSUPPORTED: no picture of a known kind, or the signature has no picture rule; CORRUPT,
 *         LIMIT, NOMEM.
 */
weir_status weir_picture_tensor(const struct weir_signature *signature, const void *bytes, size_t n,
                                struct weir_tensor **out, struct weir_error *err) WEIR_MUST_CHECK;

#endif
