/* A segment of any bytes: opened, read to its end, appended to, and read again. */
#include "predict/outbox_log.h"

#include "base/file.h"
#include "base/log.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t count_records(struct outbox_log *log)
{
    struct weir_buf text;
    uint64_t position = 0, at, next;
    size_t n = 0;
    weir_buf_init(&text, OUTBOX_RECORD_MAX_BYTES);
    while (outbox_log_read(log, position, &text, &at, &next, NULL) == WEIR_OK) {
        weir_buf_reset(&text);
        position = next;
        n++;
    }
    weir_buf_fini(&text);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char dir[] = "/tmp/weir-outbox-fuzz-XXXXXX", path[128];
    struct outbox_log *log;
    struct weir_buf group;
    uint64_t position;
    weir_log_set_level(WEIR_LOG_ERROR);
    if (size > 1 << 16 || mkdtemp(dir) == NULL) {
        return 0;
    }
    (void)snprintf(path, sizeof path, "%s/0000000000000000.log", dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || weir_fd_write_all(fd, data, size, NULL) != WEIR_OK ||
        outbox_log_open(dir, 0, &log, NULL) != WEIR_OK) {
        abort();
    }
    close(fd);
    size_t n = count_records(log);
    weir_buf_init(&group, 1024);
    if (outbox_log_frame(&group, "one more", 8) != WEIR_OK ||
        outbox_log_append(log, group.data, group.len, &position, NULL) != WEIR_OK ||
        count_records(log) != n + 1) {
        abort();
    }
    weir_buf_fini(&group);
    outbox_log_close(log);
    return weir_dir_remove(dir, NULL) == WEIR_OK ? 0 : 1;
}
