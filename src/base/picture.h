/**
 * Is a file a whole picture, as far as its first and last bytes tell? No pixel is decoded: this is
 * for programs without image code, which warn early of what a training would skip later.
 */
#ifndef WEIR_BASE_PICTURE_H
#define WEIR_BASE_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes of a file that weir_picture_problem wants to see, if it has as many. */
#define WEIR_PICTURE_HEAD_BYTES 64
#define WEIR_PICTURE_TAIL_BYTES 4096

#define WEIR_PICTURE_KINDS "JPEG, PNG, PGM or PPM"

/** Is it meant to be a picture of one of these kinds: by its name ("1.jpg"), or by how it begins? */
bool weir_picture_is_meant(const char *name, const unsigned char *head, size_t head_len);

/**
 * What is wrong with this JPEG, PNG, PGM or PPM file, in words: "is cut off"; NULL if nothing seems
 * to be.
 *
 * @param head  Its first bytes.
 * @param tail  Its last bytes; may overlap head.
 * @param size  Of the whole file.
 */
const char *weir_picture_problem(const unsigned char *head, size_t head_len,
                                 const unsigned char *tail, size_t tail_len, uint64_t size);

#endif
