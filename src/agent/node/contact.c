#include "agent/node/contact.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 4096

/* What both see. */
struct shared {
    _Atomic uint64_t boot;      /* the start of the machine that the time counts from */
    _Atomic int64_t reached_ms; /* 0: not yet */
};

struct contact {
    struct shared *shared;
    uint64_t boot;
};

static uint64_t boot_hash(void)
{
    char id[WEIR_BOOT_ID_BYTES];
    weir_boot_id(id);
    return weir_hash_text(WEIR_HASH_BEGIN, id);
}

static weir_status map(const char *dir, bool is_writer, struct contact **out,
                       struct weir_error *err)
{
    char path[PATH_BYTES];
    struct stat info;
    (void)snprintf(path, sizeof path, "%s/contact", dir);
    int fd = open(path, (is_writer ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC, 0600);
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "cannot open %s", path);
    }
    bool has_size = fstat(fd, &info) == 0 && info.st_size >= (off_t)sizeof(struct shared);
    if (!has_size && (!is_writer || ftruncate(fd, sizeof(struct shared)) != 0)) {
        int reason = is_writer ? errno : ENOENT;
        close(fd);
        return weir_error_set_errno(err, reason, "cannot use %s", path);
    }
    void *shared = mmap(NULL, sizeof(struct shared), PROT_READ | (is_writer ? PROT_WRITE : 0),
                        MAP_SHARED, fd, 0);
    int reason = errno;
    close(fd);
    if (shared == MAP_FAILED) {
        return weir_error_set_errno(err, reason, "cannot map %s", path);
    }
    struct contact *contact = weir_xalloc(sizeof *contact);
    *contact = (struct contact){.shared = shared, .boot = boot_hash()};
    *out = contact;
    return WEIR_OK;
}

weir_status contact_open(const char *dir, struct contact **out, struct weir_error *err)
{
    WEIR_TRY(map(dir, true, out, err));
    struct shared *shared = (*out)->shared;
    if (atomic_load(&shared->boot) != (*out)->boot) {
        atomic_store(&shared->reached_ms, 0);
        atomic_store(&shared->boot, (*out)->boot);
    }
    return WEIR_OK;
}

struct contact *contact_follow(const char *dir)
{
    struct contact *contact;
    struct weir_error ignored;
    return map(dir, false, &contact, &ignored) == WEIR_OK ? contact : NULL;
}

void contact_close(struct contact *contact)
{
    if (contact != NULL) {
        (void)munmap(contact->shared, sizeof *contact->shared);
        free(contact);
    }
}

void contact_note(struct contact *contact, int64_t boot_ms)
{
    atomic_store(&contact->shared->reached_ms, boot_ms);
}

int64_t contact_left_ms(const struct contact *contact, int64_t fence_ms)
{
    int64_t reached_ms = contact != NULL ? atomic_load(&contact->shared->reached_ms) : 0;
    if (reached_ms == 0 || atomic_load(&contact->shared->boot) != contact->boot) {
        return 0;
    }
    return WEIR_MAX((int64_t)0, reached_ms + fence_ms * 2 / 3 - weir_boot_ms());
}

int64_t contact_grace_ms(int64_t fence_ms)
{
    return fence_ms / 10;
}
