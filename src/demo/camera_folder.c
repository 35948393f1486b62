/** A camera that writes frames into the folder that the replica reads. */
#include "demo/cameras.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* What the folder grants to its group, its entry grants too: the folder is the group's of all tasks
 * where tasks cannot be shown root's files as theirs (agent/sandbox.h), and this process, which is root
 * there, makes files that only root may read. The entry has the folder's group by set-group-ID, or
 * is given it if the folder was handed over in this moment. */
static void grant_as_folder(const char *folder, int fd, mode_t bits)
{
    struct stat parent;
    if (stat(folder, &parent) == 0 && (parent.st_mode & S_ISGID) != 0) {
        struct stat own;
        (void)!fchown(fd, (uid_t)-1, parent.st_gid);
        if (fstat(fd, &own) == 0) {
            (void)fchmod(fd, (own.st_mode & 07777) | bits);
        }
    }
}

static weir_status start(struct camera *camera, struct weir_error *err)
{
    (void)snprintf(camera->folder, sizeof camera->folder, "%s/%s", camera->demo->frames_dir,
                   camera->name);
    WEIR_TRY(weir_dir_make(camera->folder, 0755, err));
    int fd = open(camera->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "cannot open %s", camera->folder);
    }
    grant_as_folder(camera->demo->frames_dir, fd, S_ISGID | S_IRWXG);
    (void)close(fd);
    return WEIR_OK;
}

static weir_status write_frame(const struct camera *camera, int64_t frame, size_t len,
                               struct weir_error *err)
{
    char temporary[4200], path[4200];
    (void)snprintf(temporary, sizeof temporary, "%s/.%lld.tmp", camera->folder, (long long)frame);
    (void)snprintf(path, sizeof path, "%s/%lld.pgm", camera->folder, (long long)frame);
    WEIR_TRY(weir_file_write(temporary, camera->photo, len, 0644, err));
    int fd = open(temporary, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "cannot open %s", temporary);
    }
    grant_as_folder(camera->folder, fd, S_IRGRP);
    weir_status status = rename(temporary, path) == 0
                             ? WEIR_OK
                             : weir_error_set_errno(err, errno, "cannot rename %s", temporary);
    grant_as_folder(camera->folder, fd, S_IRGRP); /* handed over between the two */
    (void)close(fd);
    return status;
}

static weir_status tick(struct camera *camera, int64_t i_tick, struct weir_error *err)
{
    int64_t frame;
    size_t len;
    WEIR_TRY(camera_frame(camera, i_tick, &frame, &len, err));
    return write_frame(camera, frame, len, err);
}

const struct camera_kind camera_of_folder = {.start = start, .tick = tick};
