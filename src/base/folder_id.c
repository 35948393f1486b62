#include "base/folder_id.h"

#include "base/file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static weir_status path_of(const char *dir, char out[PATH_MAX], struct weir_error *err)
{
    int len = snprintf(out, PATH_MAX, "%s/" WEIR_FOLDER_ID, dir);
    return len > 0 && len < PATH_MAX
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_LIMIT, "%.100s…: the path is too long", dir);
}

static weir_status read_id(const char *path, char out[WEIR_UUID_BYTES], struct weir_error *err)
{
    char text[WEIR_UUID_BYTES] = {0};
    size_t len;
    WEIR_TRY(weir_file_read_into(path, text, WEIR_UUID_BYTES - 1, &len, err));
    if (!weir_uuid_is_valid(text)) {
        return weir_error_set(err, WEIR_ERR_CORRUPT,
                              "%s does not hold a UUID: remove it, and a new one is made", path);
    }
    memcpy(out, text, WEIR_UUID_BYTES);
    return WEIR_OK;
}

/* Under its name it is whole: where two are made at a time the first one stays. */
static weir_status make_id(const char *dir, const char *path, struct weir_error *err)
{
    char id[WEIR_UUID_BYTES], part[PATH_MAX];
    weir_uuid_make(id);
    if (snprintf(part, sizeof part, "%s.%s", path, id) >= (int)sizeof part) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "%.100s…: the path is too long", dir);
    }
    WEIR_TRY(weir_file_write_atomic(part, id, WEIR_UUID_BYTES - 1, 0600, err));
    int rc = link(part, path);
    int errno_value = errno;
    (void)unlink(part);
    if (rc != 0 && errno_value != EEXIST) {
        return weir_error_set_errno(err, errno_value, "cannot make %s", path);
    }
    return weir_dir_sync(dir, err);
}

weir_status weir_folder_id(const char *dir, char out[WEIR_UUID_BYTES], struct weir_error *err)
{
    char path[PATH_MAX];
    WEIR_TRY(path_of(dir, path, err));
    weir_status status = read_id(path, out, err);
    if (status != WEIR_ERR_NOT_FOUND || !weir_path_is_dir(dir)) {
        return status;
    }
    WEIR_TRY(make_id(dir, path, err));
    return read_id(path, out, err);
}

bool weir_folder_is(const char *dir, const char *id)
{
    char path[PATH_MAX], found[WEIR_UUID_BYTES];
    return path_of(dir, path, NULL) == WEIR_OK && read_id(path, found, NULL) == WEIR_OK &&
           strcmp(found, id) == 0;
}
