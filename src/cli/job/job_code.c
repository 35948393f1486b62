#include "cli/job/job_code.h"

#include "base/names.h"
#include "cli/job/code_send.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- which file a command names ----------------------------------------------------------------- */

static bool is_one_of(const char *word, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (strcmp(word, *words) == 0) {
            return true;
        }
    }
    return false;
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static bool is_shell(const char *program)
{
    static const char *const shells[] = {"sh", "bash", "dash", "ksh", "zsh", NULL};
    return is_one_of(base_of(program), shells);
}

static bool is_python(const char *program)
{
    const char *base = base_of(program);
    return strncmp(base, "python", 6) == 0 && strspn(base + 6, "0123456789.") == strlen(base + 6);
}

/* One that runs a script given as a word. */
static bool is_interpreter(const char *program)
{
    static const char *const others[] = {"perl",   "ruby",     "Rscript",    "julia",
                                         "node",   "torchrun", "deepspeed",  "accelerate",
                                         "mpirun", "mpiexec",  "horovodrun", NULL};
    return is_python(program) || is_shell(program) || is_one_of(base_of(program), others);
}

/* A place in the job's folder, and not of the nodes. */
static bool is_within(const char *path)
{
    return path[0] != '/' && path[0] != '-' && path[0] != '~' && path[0] != '\0' &&
           strstr(path, "..") == NULL && strpbrk(path, "$*{") == NULL;
}

static bool is_file(struct weir_arena *arena, const char *dir, const char *path)
{
    struct stat info;
    return stat(weir_arena_printf(arena, "%s/%s", dir, path), &info) == 0 && S_ISREG(info.st_mode);
}

static bool has_script_ending(const char *word)
{
    static const char *const endings[] = {".py", ".sh", ".pl", ".rb", ".R", ".jl", ".js", NULL};
    const char *dot = strrchr(base_of(word), '.');
    return dot != NULL && is_one_of(dot, endings);
}

/* The text that a shell is given; NULL: none is. */
static const char *shell_text(char **words, size_t n)
{
    if (!is_shell(words[0])) {
        return NULL;
    }
    for (size_t i = 1; i + 1 < n; i++) {
        size_t len = strlen(words[i]);
        if (words[i][0] == '-' && words[i][1] != '-' && words[i][len - 1] == 'c') { /* -c, -ec */
            return words[i + 1];
        }
    }
    return NULL;
}

/* The script that an interpreter is given: "train.py" of "python3 -u train.py"; NULL: none is. */
static const char *script_of(char **words, size_t n)
{
    static const char *const with_value[] = {"-W", "-X", "-o", "-O", NULL};
    if (!is_interpreter(words[0]) || shell_text(words, n) != NULL) {
        return NULL;
    }
    for (size_t i = 1; i < n; i++) {
        bool ends = strcmp(words[i], "-c") == 0 || strcmp(words[i], "-m") == 0 ||
                    strcmp(words[i], "-e") == 0;
        if (ends || strcmp(words[i], "-") == 0) {
            return NULL;
        }
        if (has_script_ending(words[i]) && words[i][0] != '-') {
            return words[i];
        }
        i += is_one_of(words[i], with_value) ? 1 : 0;
    }
    return NULL;
}

/* The next word of a shell's text. *out_begins: a command begins with it. In the arena; NULL: there is none. */
static char *next_token(struct weir_arena *arena, const char **rest, bool *out_begins)
{
    static const char between[] = " \t\n;|&()<>'\"`";
    *out_begins = false;
    while (**rest != '\0' && strchr(between, **rest) != NULL) {
        *out_begins = *out_begins || strchr("\n;|&(`", **rest) != NULL;
        (*rest)++;
    }
    size_t len = strcspn(*rest, between);
    char *token = len > 0 ? weir_arena_memdup(arena, *rest, len) : NULL;
    *rest += len;
    return token;
}

/* "-m pkg.train": is the module here? */
static bool is_module(const char *word, struct weir_arena *arena)
{
    struct stat info;
    size_t len = strcspn(word, ".");
    char *top = weir_arena_printf(arena, "%.*s", (int)len, word);
    return len > 0 && strchr(word, '/') == NULL &&
           ((stat(top, &info) == 0 && S_ISDIR(info.st_mode)) ||
            stat(weir_arena_printf(arena, "%s.py", top), &info) == 0);
}

static bool names_one_in_text(const char *text, struct weir_arena *arena)
{
    bool begins;
    for (char *token; (token = next_token(arena, &text, &begins)) != NULL;) {
        if (is_within(token) && is_file(arena, ".", token)) {
            return true;
        }
    }
    return false;
}

/* Does a word of the command name a file of this folder: a script, its input, a module? */
static bool names_a_file(char **words, size_t n, struct weir_arena *arena)
{
    const char *text = shell_text(words, n);
    for (size_t i = 0; i < n; i++) {
        bool is_path = words[i][0] != '/' && words[i][0] != '-';
        if ((is_path && is_file(arena, ".", words[i])) ||
            (is_path && i > 0 && strcmp(words[i - 1], "-m") == 0 && is_module(words[i], arena))) {
            return true;
        }
    }
    return text != NULL && names_one_in_text(text, arena);
}

/* ---- what will not be there ---------------------------------------------------------------------- */

/* The file of that folder whose name is near to this one; NULL: none is. */
static const char *near_to(struct weir_arena *arena, const char *dir, const char *path)
{
    struct weir_nearest nearest = {0};
    const char *base = base_of(path);
    DIR *folder = opendir(weir_arena_printf(arena, "%s/%.*s", dir, (int)(base - path), path));
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] != '.') {
            weir_nearest_see(&nearest, base, strlen(base), weir_arena_strdup(arena, entry->d_name));
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return nearest.name != NULL
               ? weir_arena_printf(arena, "%.*s%s", (int)(base - path), path, nearest.name)
               : NULL;
}

static weir_status refuse_missing(struct cli_call *call, const char *dir, const char *path,
                                  struct weir_error *err)
{
    const char *near = near_to(call->arena, dir, path);
    bool is_here = strcmp(dir, ".") == 0;
    return weir_error_set(
        err, WEIR_ERR_INVALID, "there is no %.80s in %.80s%s%s%s", path,
        is_here ? "this folder" : dir, near != NULL ? "; did you mean " : "",
        near != NULL ? near : "",
        near != NULL
            ? "?"
            : ": a job begins in a folder of its own, with the files that are sent; go to "
              "the script's folder, name it with --dir, or give a whole path of the nodes");
}

/* A program given by its place in the folder must be there, and may be run there as it may be here. */
static weir_status check_program(struct cli_call *call, const char *dir, const char *program,
                                 struct weir_error *err)
{
    struct stat info;
    if (strchr(program, '/') == NULL || !is_within(program)) {
        return WEIR_OK; /* a matter of the node */
    }
    if (stat(weir_arena_printf(call->arena, "%s/%s", dir, program), &info) != 0) {
        return refuse_missing(call, dir, program, err);
    }
    return (info.st_mode & S_IXUSR) != 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "\"%.60s\" may not be run: chmod +x it, or name its program in "
                                "front of it",
                                program);
}

/* What a shell is given may make its files itself: that is only warned of. */
static void warn_of_text(struct cli_call *call, const char *dir, const char *text)
{
    bool begins, is_first = true;
    const char *rest = text;
    if (strstr(text, "cd ") != NULL) {
        return;
    }
    for (char *token; (token = next_token(call->arena, &rest, &begins)) != NULL; is_first = false) {
        bool is_path = (begins || is_first) && strncmp(token, "./", 2) == 0 && is_within(token);
        bool is_named_before = is_path && strstr(text, token + 2) < rest - strlen(token);
        if (is_path && !is_named_before && !is_file(call->arena, dir, token)) {
            const char *near = near_to(call->arena, dir, token);
            (void)fprintf(stderr,
                          "weir: warning: there is no %s in %s%s%s%s; if the job does not make it "
                          "itself, it fails\n",
                          token, strcmp(dir, ".") == 0 ? "this folder" : dir,
                          near != NULL ? " (did you mean " : "", near != NULL ? near : "",
                          near != NULL ? "?)" : "");
            return;
        }
    }
}

/* All that can be known from here of what the command names. */
static weir_status check_files(struct cli_call *call, const struct job_code *code, const char *dir,
                               char **words, size_t n, struct weir_error *err)
{
    const char *script = script_of(words, n), *text = shell_text(words, n);
    if (code->image != NULL || code->git != NULL) {
        return WEIR_OK; /* they have files of their own */
    }
    WEIR_TRY(check_program(call, dir, words[0], err));
    if (script != NULL && is_within(script) && !is_file(call->arena, dir, script)) {
        return refuse_missing(call, dir, script, err);
    }
    if (script != NULL && is_within(script) && !code->has_files) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--no-files: %.80s is not sent, so the job would not find it: leave "
                              "--no-files out, or give a whole path of the nodes",
                              script);
    }
    if (text != NULL) {
        warn_of_text(call, dir, text);
    }
    return WEIR_OK;
}

weir_status job_code_add(struct cli_call *call, const struct job_code *code, char **words, size_t n,
                         json_t *spec, struct weir_error *err)
{
    const char *dir = code->dir != NULL ? code->dir : ".";
    bool has_folder =
        code->has_files &&
        (code->dir != NULL || (code->git == NULL && names_a_file(words, n, call->arena)));
    if (code->git != NULL && code->dir != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "--git or --dir? Give one of the two");
    }
    if (code->dir != NULL && access(code->dir, F_OK) != 0) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "--dir: there is no folder %s", code->dir);
    }
    WEIR_TRY(check_files(call, code, dir, words, n, err));
    if (!has_folder && code->git == NULL) {
        return WEIR_OK;
    }
    json_t *sent = json_object();
    json_object_set_new(spec, "code", sent);
    return has_folder ? code_send_folder(call, dir, code->project, sent, err)
                      : code_read_git(call, code->git, sent, err);
}
