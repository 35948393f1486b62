#include "batch/input.h"

#include "base/file.h"
#include "data/dataset.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MANIFEST_MAX_BYTES ((size_t)513 << 20)
#define PATH_BYTES         4300

struct batch_input {
    const struct batch_spec *spec;
    struct weir_client *client;
    json_t *manifest;
    const json_t *files;         /**< Of the manifest. */
    struct weir_dataset *images; /**< Of the kind "idx"; else NULL. */
    struct weir_buf bytes;       /**< Of the file that is being read. */
};

/* ---- the manifest ---------------------------------------------------------------------------- */

static weir_status get_blob(struct weir_client *client, const char *sha256, struct weir_buf *out,
                            struct weir_error *err)
{
    char path[128];
    (void)snprintf(path, sizeof path, "/api/v1/blobs/%.64s", sha256);
    weir_buf_reset(out);
    return weir_client_get_bytes(client, path, out, NULL, err);
}

static weir_status load_manifest(struct batch_input *input, struct weir_error *err)
{
    const struct batch_spec *spec = input->spec;
    if (input->client == NULL) {
        return weir_json_load(spec->manifest, MANIFEST_MAX_BYTES, &input->manifest, err);
    }
    WEIR_AUTO(weir_buf_fini) struct weir_buf text;
    weir_buf_init(&text, MANIFEST_MAX_BYTES);
    WEIR_TRY(get_blob(input->client, spec->manifest, &text, err));
    return weir_json_parse(text.data, text.len, "manifest", &input->manifest, err);
}

static const char *text_of(const json_t *entry, const char *member)
{
    const char *text = json_string_value(json_object_get(entry, member));
    return text != NULL ? text : "";
}

static const char *class_of(const struct batch_input *input, int64_t i)
{
    return text_of(json_array_get(input->files, (size_t)i), "class");
}

static const char *file_of(const struct batch_input *input, int64_t i)
{
    return text_of(json_array_get(input->files, (size_t)i), "file");
}

static const char *digest_of(const struct batch_input *input, int64_t i)
{
    return text_of(json_array_get(input->files, (size_t)i), "sha256");
}

/* A name that leads out of the folder is in no manifest that the server made. */
static weir_status check_manifest(struct batch_input *input, struct weir_error *err)
{
    input->files = json_object_get(input->manifest, "files");
    if (!json_is_array(input->files)) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "manifest: $.files: expected an array");
    }
    for (size_t i = 0; i < json_array_size(input->files); i++) {
        const char *class_name = class_of(input, (int64_t)i), *file = file_of(input, (int64_t)i);
        bool is_named = file[0] != '\0' && file[0] != '.' && class_name[0] != '.' &&
                        strchr(file, '/') == NULL && strchr(class_name, '/') == NULL;
        if (!is_named || strlen(digest_of(input, (int64_t)i)) != WEIR_SHA256_TEXT_BYTES - 1) {
            return weir_error_set(err, WEIR_ERR_CORRUPT,
                                  "manifest: $.files[%zu]: expected {\"class\", \"file\", "
                                  "\"sha256\"}",
                                  i);
        }
    }
    return WEIR_OK;
}

static const char *name_of(const struct batch_input *input, int64_t i, char *out, size_t size)
{
    const char *class_name = class_of(input, i);
    (void)snprintf(out, size, "%s%s%s", class_name, class_name[0] != '\0' ? "/" : "",
                   file_of(input, i));
    return out;
}

/* ---- IDX ------------------------------------------------------------------------------------- */

/* Its files are read whole and once: here they are compared with the version. */
static weir_status open_images(struct batch_input *input, struct weir_error *err)
{
    const struct batch_spec *spec = input->spec;
    const struct weir_dataset_options options = {.kind = WEIR_DATASET_IDX, .split = spec->split};
    for (size_t i = 0; i < json_array_size(input->files); i++) {
        char path[PATH_BYTES], name[BATCH_NAME_BYTES], digest[WEIR_SHA256_TEXT_BYTES];
        uint64_t n_bytes;
        (void)snprintf(path, sizeof path, "%s/%s", spec->data,
                       name_of(input, (int64_t)i, name, sizeof name));
        WEIR_TRY(weir_file_sha256(path, digest, &n_bytes, err));
        if (strcmp(digest, digest_of(input, (int64_t)i)) != 0) {
            return weir_error_set(err, WEIR_ERR_CORRUPT,
                                  "%s is not the file of %s any more: it was changed since", name,
                                  spec->dataset);
        }
    }
    return weir_dataset_open(spec->data, &options, &input->images, err);
}

/* ---- lifecycle ------------------------------------------------------------------------------- */

static weir_status open_input(struct batch_input *input, struct weir_error *err)
{
    const struct batch_spec *spec = input->spec;
    WEIR_TRY(load_manifest(input, err));
    WEIR_TRY(check_manifest(input, err));
    if (!weir_path_is_dir(spec->data)) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "dataset %s: its folder %.400s is not on this machine, or may not be "
                              "read",
                              spec->dataset, spec->data);
    }
    return strcmp(spec->dataset_kind, "idx") == 0 ? open_images(input, err) : WEIR_OK;
}

weir_status batch_input_open(const struct batch_spec *spec, struct weir_client *client,
                             struct batch_input **out, struct weir_error *err)
{
    struct batch_input *input = weir_xalloc(sizeof *input);
    *input = (struct batch_input){.spec = spec, .client = client};
    weir_buf_init(&input->bytes, WEIR_IMAGE_MAX_FILE_BYTES);
    weir_status status = open_input(input, err);
    if (status != WEIR_OK) {
        batch_input_close(input);
        return status;
    }
    *out = input;
    return WEIR_OK;
}

void batch_input_close(struct batch_input *input)
{
    if (input == NULL) {
        return;
    }
    weir_dataset_close(input->images);
    weir_buf_fini(&input->bytes);
    json_decref(input->manifest);
    free(input);
}

int64_t batch_input_n_files(const struct batch_input *input)
{
    return (int64_t)(input->images != NULL ? weir_dataset_n_samples(input->images)
                                           : json_array_size(input->files));
}

const char *batch_input_name(const struct batch_input *input, int64_t i, char out[BATCH_NAME_BYTES])
{
    return input->images != NULL ? weir_dataset_sample_name(input->images, (size_t)i, out)
                                 : name_of(input, i, out, BATCH_NAME_BYTES);
}

const char *batch_input_digest(const struct batch_input *input, int64_t i)
{
    return input->images != NULL ? "" : digest_of(input, i);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* The bytes of a regular file; no link is followed, and no FIFO waited for. */
static weir_status read_file(const char *path, const char *name, struct weir_buf *out,
                             struct weir_error *err)
{
    char bytes[65536];
    struct stat facts;
    weir_status status = WEIR_OK;
    ssize_t n = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "%.300s", name);
    }
    if (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode)) {
        status = weir_error_set(err, WEIR_ERR_INVALID, "it is no regular file");
    }
    weir_buf_reset(out);
    while (status == WEIR_OK && (n = read(fd, bytes, sizeof bytes)) != 0) {
        if (n > 0) {
            status = weir_buf_append(out, bytes, (size_t)n);
            status = status == WEIR_OK
                         ? status
                         : weir_error_set(err, WEIR_ERR_LIMIT, "it is larger than %u MiB",
                                          WEIR_IMAGE_MAX_FILE_BYTES >> 20);
        } else if (errno != EINTR) {
            status = weir_error_set_errno(err, errno, "%.300s", name);
        }
    }
    (void)close(fd);
    return status;
}

static bool is_the_versions(const struct batch_input *input, int64_t i)
{
    char digest[WEIR_SHA256_TEXT_BYTES];
    weir_sha256(input->bytes.data, input->bytes.len, digest);
    return strcmp(digest, digest_of(input, i)) == 0;
}

/* Not in the folder as the version has it: the server may have it. */
static weir_status read_kept(struct batch_input *input, int64_t i, struct weir_error *err)
{
    weir_status status = WEIR_ERR_NOT_FOUND;
    if (input->client != NULL) {
        status = get_blob(input->client, digest_of(input, i), &input->bytes, err);
    }
    return status != WEIR_ERR_NOT_FOUND
               ? status
               : weir_error_set(err, WEIR_ERR_NOT_FOUND,
                                "the folder does not have this file of the version any more: it "
                                "was changed or removed since");
}

weir_status batch_input_read(struct batch_input *input, int64_t i, struct weir_image *out,
                             struct weir_error *err)
{
    char path[PATH_BYTES], name[BATCH_NAME_BYTES];
    if (input->images != NULL) {
        return weir_dataset_read(input->images, (size_t)i, out, err);
    }
    name_of(input, i, name, sizeof name);
    (void)snprintf(path, sizeof path, "%s/%s", input->spec->data, name);
    weir_status status = read_file(path, name, &input->bytes, err);
    if (status == WEIR_ERR_NOT_FOUND || (status == WEIR_OK && !is_the_versions(input, i))) {
        status = read_kept(input, i, err);
    }
    WEIR_TRY(status);
    return weir_image_decode(input->bytes.data, input->bytes.len, out, err);
}

bool batch_input_is_row(weir_status status)
{
    return status == WEIR_ERR_CORRUPT || status == WEIR_ERR_UNSUPPORTED ||
           status == WEIR_ERR_LIMIT || status == WEIR_ERR_NOT_FOUND || status == WEIR_ERR_INVALID;
}
