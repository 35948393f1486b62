/*
 * picture_case SIGNATURE PICTURE: the bytes of the tensor that a picture becomes, on stdout.
 * SIGNATURE is a file of JSON.
 */
#include "serve/preprocess.h"

#include "base/arena.h"
#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>

#define FILE_MAX ((size_t)64 << 20)

static struct weir_error err;

static weir_status run(char **paths, struct weir_arena *arena)
{
    char *text, *picture;
    size_t len, picture_len;
    struct weir_signature signature;
    struct weir_tensor *tensor;
    WEIR_TRY(weir_file_read(paths[0], FILE_MAX, arena, &text, &len, &err));
    WEIR_TRY(weir_file_read(paths[1], FILE_MAX, arena, &picture, &picture_len, &err));
    WEIR_TRY(weir_signature_parse(text, len, paths[0], arena, &signature, &err));
    WEIR_TRY(weir_picture_tensor(&signature, picture, picture_len, &tensor, &err));
    size_t n = fwrite(tensor->data, weir_dtype_bytes(tensor->dtype), tensor->n_elems, stdout);
    bool is_written = n == tensor->n_elems && fflush(stdout) == 0;
    weir_tensor_release(tensor);
    return is_written ? WEIR_OK : weir_error_set(&err, WEIR_ERR_IO, "stdout cannot be written");
}

int main(int argc, char **argv)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 4 * FILE_MAX);
    weir_status status = argc == 3 ? run(argv + 1, &arena) : WEIR_ERR_INVALID;
    if (status != WEIR_OK) {
        (void)fprintf(stderr, "picture_case: %s\n", err.message);
    }
    weir_arena_fini(&arena);
    return status == WEIR_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
