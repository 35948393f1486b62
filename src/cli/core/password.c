/** Reading a password: from the terminal without showing it, or from a file. */
#include "cli/command.h"
#include "cli/core/input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#define PASSWORD_MAX_BYTES 1024

/* One line of the terminal, which does not show it. */
static weir_status read_terminal(int fd, const char *prompt, char *out, size_t size,
                                 struct weir_error *err)
{
    struct termios before, silent;
    size_t n = 0;
    char byte = '\0';
    if (tcgetattr(fd, &before) != 0) {
        return weir_error_set_errno(err, errno, "reading a password from the terminal");
    }
    silent = before;
    silent.c_lflag &= ~(tcflag_t)ECHO;
    /* What is typed when the prompt is seen is neither shown nor thrown away. */
    (void)tcsetattr(fd, TCSAFLUSH, &silent);
    (void)!write(fd, prompt, strlen(prompt));
    while (n + 1 < size && read(fd, &byte, 1) == 1 && byte != '\n') {
        out[n++] = byte;
    }
    (void)tcsetattr(fd, TCSAFLUSH, &before);
    (void)!write(fd, "\n", 1);
    out[n] = '\0';
    return WEIR_OK;
}

weir_status cli_read_password(struct cli_call *call, const char *prompt, const char *file,
                              char **out, struct weir_error *err)
{
    char *line;
    size_t len;
    if (file != NULL) {
        WEIR_TRY(cli_input_read(file, PASSWORD_MAX_BYTES, call->arena, &line, &len, err));
        line[strcspn(line, "\r\n")] = '\0';
        *out = line;
        return WEIR_OK;
    }
    int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "there is no terminal to ask for the password: --password-file FILE");
    }
    *out = weir_arena_alloc(call->arena, PASSWORD_MAX_BYTES);
    weir_status status = read_terminal(fd, prompt, *out, PASSWORD_MAX_BYTES, err);
    (void)close(fd);
    return status;
}
