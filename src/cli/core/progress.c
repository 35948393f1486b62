#include "cli/core/progress.h"

#include "base/clock.h"

#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#define TERMINAL_EVERY_MS 200
#define PLAIN_EVERY_MS    10000
#define FILE_MIN_BYTES    ((off_t)32 << 20)

void cli_progress_tell(const struct cli_call *call, struct cli_progress *progress,
                       const char *format, ...)
{
    char text[160];
    va_list arguments;
    int64_t now_ms = weir_mono_ms();
    bool is_terminal = isatty(STDERR_FILENO) == 1;
    if (progress->told_ms == 0) {
        progress->told_ms = now_ms;
    }
    if (cli_is_json(call) ||
        now_ms - progress->told_ms < (is_terminal ? TERMINAL_EVERY_MS : PLAIN_EVERY_MS)) {
        return;
    }
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)fprintf(stderr, is_terminal ? "\r\033[Kweir: %s" : "weir: %s\n", text);
    progress->is_open = is_terminal;
    progress->told_ms = now_ms;
}

void cli_progress_file(const struct cli_call *call, const char *path)
{
    struct stat info;
    if (!cli_is_json(call) && stat(path, &info) == 0 && info.st_size >= FILE_MIN_BYTES) {
        (void)fprintf(stderr, "weir: sends %s, %.0f MiB, unless the server has it\n", path,
                      (double)info.st_size / (1 << 20));
    }
}

void cli_progress_end(struct cli_progress *progress)
{
    if (progress->is_open) {
        (void)fprintf(stderr, "\r\033[K");
    }
    progress->is_open = false;
}
