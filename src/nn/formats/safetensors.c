#include "nn/safetensors.h"

#include "base/json.h"
#include "base/open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensors are read as they lie");

#define PREFIX_BYTES ((uint64_t)8)

/** The format's dtypes; those without a conversion can be listed and skipped, not read. */
struct dtype {
    const char *name;
    uint64_t n_bytes;
    void (*convert)(const uint16_t *in, float *out, size_t n);
};

static void f16_to_f32(const uint16_t *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t sign = (uint32_t)(in[i] & 0x8000) << 16;
        uint32_t exponent = (in[i] >> 10) & 0x1f, mantissa = in[i] & 0x3ff, bits;
        if (exponent == 0x1f) { /* Infinity or NaN. */
            bits = sign | 0x7f800000U | mantissa << 13;
        } else if (exponent != 0) {
            bits = sign | (exponent + 112) << 23 | mantissa << 13; /* 112 = 127 - 15. */
        } else { /* Zero or subnormal: mantissa * 2^-24, exact in f32. */
            float value = (float)mantissa * 0x1p-24f;
            memcpy(&bits, &value, sizeof bits);
            bits |= sign;
        }
        memcpy(&out[i], &bits, sizeof bits);
    }
}

static void bf16_to_f32(const uint16_t *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)in[i] << 16;
        memcpy(&out[i], &bits, sizeof bits);
    }
}

static const struct dtype dtypes[] = {
    {"F32", 4, NULL},  {"F16", 2, f16_to_f32}, {"BF16", 2, bf16_to_f32}, {"F64", 8, NULL},
    {"I64", 8, NULL},  {"U64", 8, NULL},       {"I32", 4, NULL},         {"U32", 4, NULL},
    {"I16", 2, NULL},  {"U16", 2, NULL},       {"I8", 1, NULL},          {"U8", 1, NULL},
    {"BOOL", 1, NULL}, {"F8_E4M3", 1, NULL},   {"F8_E5M2", 1, NULL},
};

static const struct dtype *dtype_find(const char *name)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(dtypes); i++) {
        if (strcmp(dtypes[i].name, name) == 0) {
            return &dtypes[i];
        }
    }
    return NULL;
}

struct weir_safetensors {
    char *what;           /**< Path, for messages. */
    int fd;               /**< -1 for a file in memory. */
    const uint8_t *bytes; /**< NULL for a file on disk. */
    uint64_t n_bytes;     /**< Size of the file when it was opened. */
    json_t *header;       /**< Kept: names and metadata are its strings. */
    struct weir_safetensors_entry *entries;
    size_t n_entries;
};

/** Read [at, at + n) of the file, which must lie inside n_bytes. */
static weir_status source_read(const struct weir_safetensors *file, uint64_t at, void *out,
                               size_t n, struct weir_error *err)
{
    if (file->bytes != NULL) {
        memcpy(out, file->bytes + at, n);
        return WEIR_OK;
    }
    size_t done = 0;
    while (done < n) {
        ssize_t got = pread(file->fd, (char *)out + done, n - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return weir_error_set_errno(err, errno, "cannot read %s", file->what);
        }
        if (got == 0) {
            return weir_error_set(err, WEIR_ERR_CORRUPT,
                                  "%s became shorter while it was read: no byte at %llu",
                                  file->what, (unsigned long long)(at + done));
        }
        done += (size_t)got;
    }
    return WEIR_OK;
}

/* ---- header ------------------------------------------------------------------------------- */

static weir_status header_read(struct weir_safetensors *file, struct weir_error *err)
{
    if (file->n_bytes < PREFIX_BYTES) {
        return weir_error_set(err, WEIR_ERR_CORRUPT,
                              "%s holds %llu bytes: too short for a safetensors file", file->what,
                              (unsigned long long)file->n_bytes);
    }
    uint64_t n_header;
    WEIR_TRY(source_read(file, 0, &n_header, sizeof n_header, err));
    if (n_header > file->n_bytes - PREFIX_BYTES) {
        return weir_error_set(
            err, WEIR_ERR_CORRUPT, "%s: header length %llu passes the end of the file (%llu bytes)",
            file->what, (unsigned long long)n_header, (unsigned long long)file->n_bytes);
    }
    if (n_header > WEIR_SAFETENSORS_HEADER_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "%s: header of %llu bytes, at most %zu are read",
                              file->what, (unsigned long long)n_header,
                              WEIR_SAFETENSORS_HEADER_MAX);
    }
    char *text = malloc(n_header + 1);
    if (text == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "%s: no memory for the header", file->what);
    }
    weir_status status = source_read(file, PREFIX_BYTES, text, n_header, err);
    if (status == WEIR_OK && (n_header == 0 || text[0] != '{')) {
        status = weir_error_set(err, WEIR_ERR_CORRUPT, "%s: the header does not begin with \"{\"",
                                file->what);
    } else if (status == WEIR_OK) {
        status = weir_json_parse(text, n_header, file->what, &file->header, err);
        if (status == WEIR_ERR_INVALID || status == WEIR_ERR_LIMIT) {
            status = WEIR_ERR_CORRUPT; /* The header must be JSON. */
            if (err != NULL) {
                err->status = status;
            }
        }
    }
    free(text);
    return status;
}

static weir_status metadata_check(const struct weir_safetensors *file, json_t *metadata,
                                  struct weir_error *err)
{
    if (!json_is_object(metadata)) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "%s: __metadata__ is not an object",
                              file->what);
    }
    const char *key;
    json_t *value;
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value)) {
            return weir_error_set(err, WEIR_ERR_CORRUPT, "%s: __metadata__.%.100s is not a string",
                                  file->what, key);
        }
    }
    return WEIR_OK;
}

static weir_status shape_read(const struct weir_safetensors *file, const json_t *shape,
                              struct weir_safetensors_entry *entry, struct weir_error *err)
{
    if (!json_is_array(shape)) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "%s: tensor \"%.100s\": shape is not an array",
                              file->what, entry->name);
    }
    if (json_array_size(shape) > WEIR_SAFETENSORS_DIMS_MAX) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "%s: tensor \"%.100s\" has %zu dimensions; at most %d are read",
                              file->what, entry->name, json_array_size(shape),
                              WEIR_SAFETENSORS_DIMS_MAX);
    }
    entry->n_dims = (int32_t)json_array_size(shape);
    entry->n_elems = 1;
    for (int32_t i = 0; i < entry->n_dims; i++) {
        const json_t *dim = json_array_get(shape, (size_t)i);
        entry->dims[i] = json_is_integer(dim) ? (int64_t)json_integer_value(dim) : -1;
        if (entry->dims[i] < 0 ||
            __builtin_mul_overflow(entry->n_elems, (uint64_t)entry->dims[i], &entry->n_elems)) {
            return weir_error_set(err, WEIR_ERR_CORRUPT,
                                  "%s: tensor \"%.100s\": shape[%d] is not a size or too large",
                                  file->what, entry->name, i);
        }
    }
    return WEIR_OK;
}

/** Offsets, relative to the data, must hold exactly the elements of the shape, inside the data. */
static weir_status offsets_read(const struct weir_safetensors *file, const json_t *offsets,
                                uint64_t elem_bytes, uint64_t n_data,
                                struct weir_safetensors_entry *entry, struct weir_error *err)
{
    const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
        json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin)) {
        return weir_error_set(err, WEIR_ERR_CORRUPT,
                              "%s: tensor \"%.100s\": data_offsets is not [begin, end]", file->what,
                              entry->name);
    }
    entry->first_byte = (uint64_t)json_integer_value(begin);
    entry->n_bytes = (uint64_t)json_integer_value(end) - entry->first_byte;
    if ((uint64_t)json_integer_value(end) > n_data) {
        return weir_error_set(err, WEIR_ERR_CORRUPT,
                              "%s: tensor \"%.100s\" ends at byte %llu of %llu bytes of data",
                              file->what, entry->name, (unsigned long long)json_integer_value(end),
                              (unsigned long long)n_data);
    }
    uint64_t wanted;
    if (__builtin_mul_overflow(entry->n_elems, elem_bytes, &wanted) || wanted != entry->n_bytes) {
        return weir_error_set(err, WEIR_ERR_CORRUPT,
                              "%s: tensor \"%.100s\": %llu elements of %s do not fill %llu bytes",
                              file->what, entry->name, (unsigned long long)entry->n_elems,
                              entry->dtype, (unsigned long long)entry->n_bytes);
    }
    return WEIR_OK;
}

static weir_status entry_read(const struct weir_safetensors *file, const char *name,
                              const json_t *object, uint64_t n_data,
                              struct weir_safetensors_entry *entry, struct weir_error *err)
{
    entry->name = name;
    const char *dtype_name = json_string_value(json_object_get(object, "dtype"));
    if (dtype_name == NULL || json_object_size(object) != 3) {
        return weir_error_set(err, WEIR_ERR_CORRUPT,
                              "%s: tensor \"%.100s\": expected dtype, shape and data_offsets only",
                              file->what, name);
    }
    const struct dtype *dtype = dtype_find(dtype_name);
    if (dtype == NULL) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "%s: tensor \"%.100s\": dtype \"%.32s\"",
                              file->what, name, dtype_name);
    }
    entry->dtype = dtype->name;
    WEIR_TRY(shape_read(file, json_object_get(object, "shape"), entry, err));
    return offsets_read(file, json_object_get(object, "data_offsets"), dtype->n_bytes, n_data,
                        entry, err);
}

static int entry_compare(const void *a, const void *b)
{
    const struct weir_safetensors_entry *x = a;
    const struct weir_safetensors_entry *y = b;
    if (x->first_byte != y->first_byte) {
        return x->first_byte < y->first_byte ? -1 : 1;
    }
    /* Empty tensors lie before the one that begins at the same offset; then by name, so that the
     * order is a function of the file. */
    if (x->n_bytes != y->n_bytes) {
        return x->n_bytes < y->n_bytes ? -1 : 1;
    }
    return strcmp(x->name, y->name);
}

/** Sorts by offset and checks that the data is covered once; then counts offsets from the file's
 *  start. */
static weir_status cover_check(struct weir_safetensors *file, uint64_t first_data, uint64_t n_data,
                               struct weir_error *err)
{
    qsort(file->entries, file->n_entries, sizeof *file->entries, entry_compare);
    uint64_t covered = 0;
    for (size_t i = 0; i < file->n_entries; i++) {
        struct weir_safetensors_entry *entry = &file->entries[i];
        if (entry->first_byte != covered) {
            return weir_error_set(err, WEIR_ERR_CORRUPT,
                                  "%s: tensor \"%.100s\" begins at byte %llu of the data, %s byte "
                                  "%llu, where the tensor before it ends",
                                  file->what, entry->name, (unsigned long long)entry->first_byte,
                                  entry->first_byte < covered ? "before" : "behind",
                                  (unsigned long long)covered);
        }
        covered += entry->n_bytes;
        entry->first_byte += first_data;
    }
    if (covered != n_data) {
        return weir_error_set(err, WEIR_ERR_CORRUPT,
                              "%s: %llu bytes behind the last tensor belong to none", file->what,
                              (unsigned long long)(n_data - covered));
    }
    return WEIR_OK;
}

static weir_status index_make(struct weir_safetensors *file, struct weir_error *err)
{
    WEIR_TRY(header_read(file, err));
    uint64_t n_header;
    WEIR_TRY(source_read(file, 0, &n_header, sizeof n_header, err));
    uint64_t first_data = PREFIX_BYTES + n_header, n_data = file->n_bytes - first_data;
    file->entries = calloc(json_object_size(file->header) + 1, sizeof *file->entries);
    if (file->entries == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "%s: no memory for the index", file->what);
    }
    const char *name;
    json_t *value;
    json_object_foreach(file->header, name, value)
    {
        if (strcmp(name, "__metadata__") == 0) {
            WEIR_TRY(metadata_check(file, value, err));
            continue;
        }
        WEIR_TRY(entry_read(file, name, value, n_data, &file->entries[file->n_entries], err));
        file->n_entries++;
    }
    return cover_check(file, first_data, n_data, err);
}

/* ---- opening ------------------------------------------------------------------------------ */

static struct weir_safetensors *file_create(const char *what)
{
    struct weir_safetensors *file = calloc(1, sizeof *file);
    if (file == NULL) {
        return NULL;
    }
    file->fd = -1;
    file->what = strdup(what);
    if (file->what == NULL) {
        free(file);
        return NULL;
    }
    return file;
}

static weir_status file_index(struct weir_safetensors *file, struct weir_safetensors **out,
                              struct weir_error *err)
{
    weir_status status = index_make(file, err);
    if (status != WEIR_OK) {
        weir_safetensors_close(file);
        return status;
    }
    *out = file;
    return WEIR_OK;
}

weir_status weir_safetensors_open(const char *path, struct weir_safetensors **out,
                                  struct weir_error *err)
{
    struct weir_safetensors *file = file_create(path);
    if (file == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "%s: no memory", path);
    }
    struct stat st;
    weir_status status = WEIR_OK;
    file->fd = weir_open_read(path); /* a named pipe is refused, not waited for */
    if (file->fd < 0) {
        status = weir_error_set_errno(err, errno, "cannot open %s", path);
    } else if (fstat(file->fd, &st) != 0) {
        status = weir_error_set_errno(err, errno, "cannot stat %s", path);
    } else if (!S_ISREG(st.st_mode)) {
        status = weir_error_set(err, WEIR_ERR_INVALID, "%s is not a regular file", path);
    }
    if (status != WEIR_OK) {
        weir_safetensors_close(file);
        return status;
    }
    file->n_bytes = (uint64_t)st.st_size;
    return file_index(file, out, err);
}

weir_status weir_safetensors_open_memory(const void *bytes, size_t len, const char *what,
                                         struct weir_safetensors **out, struct weir_error *err)
{
    struct weir_safetensors *file = file_create(what);
    if (file == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "%s: no memory", what);
    }
    /* An empty file may come as NULL, which marks files on disk. */
    file->bytes = bytes != NULL ? bytes : (const uint8_t *)"";
    file->n_bytes = len;
    return file_index(file, out, err);
}

void weir_safetensors_close(struct weir_safetensors *file)
{
    if (file == NULL) {
        return;
    }
    if (file->fd >= 0) {
        (void)close(file->fd);
    }
    json_decref(file->header);
    free(file->entries);
    free(file->what);
    free(file);
}

/* ---- reading ------------------------------------------------------------------------------ */

const struct weir_safetensors_entry *weir_safetensors_entries(const struct weir_safetensors *file,
                                                              size_t *out_n)
{
    *out_n = file->n_entries;
    return file->entries;
}

const struct weir_safetensors_entry *weir_safetensors_find(const struct weir_safetensors *file,
                                                           const char *name)
{
    for (size_t i = 0; i < file->n_entries; i++) {
        if (strcmp(file->entries[i].name, name) == 0) {
            return &file->entries[i];
        }
    }
    return NULL;
}

const char *weir_safetensors_metadata(const struct weir_safetensors *file, const char *key)
{
    return json_string_value(json_object_get(json_object_get(file->header, "__metadata__"), key));
}

static weir_status convert_read(const struct weir_safetensors *file,
                                const struct weir_safetensors_entry *entry,
                                const struct dtype *dtype, float *out, struct weir_error *err)
{
    uint16_t chunk[4096];
    for (uint64_t at = 0; at < entry->n_elems;) {
        size_t n = (size_t)WEIR_MIN(entry->n_elems - at, WEIR_ARRAY_LEN(chunk));
        WEIR_TRY(source_read(file, entry->first_byte + at * sizeof *chunk, chunk, n * sizeof *chunk,
                             err));
        dtype->convert(chunk, out + at, n);
        at += n;
    }
    return WEIR_OK;
}

weir_status weir_safetensors_read_f32(const struct weir_safetensors *file, const char *name,
                                      float *out, size_t n_elems, struct weir_error *err)
{
    const struct weir_safetensors_entry *entry = weir_safetensors_find(file, name);
    if (entry == NULL) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "%s has no tensor \"%s\"", file->what, name);
    }
    if (entry->n_elems != n_elems) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: tensor \"%s\" has %llu elements, %zu are wanted", file->what,
                              name, (unsigned long long)entry->n_elems, n_elems);
    }
    const struct dtype *dtype = dtype_find(entry->dtype);
    if (dtype == &dtypes[0]) {
        return source_read(file, entry->first_byte, out, n_elems * sizeof *out, err);
    }
    if (dtype->convert == NULL) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "%s: tensor \"%s\" is %s; F32, F16 and BF16 are read", file->what,
                              name, entry->dtype);
    }
    return convert_read(file, entry, dtype, out, err);
}
