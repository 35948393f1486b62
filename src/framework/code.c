#include "framework/code.h"

#include "base/macros.h"

#include <ctype.h>
#include <string.h>

#define HEX         "0123456789abcdef"
#define HASH_DIGITS 64
#define COMMIT_MIN  7
#define ADDRESS_MAX 1024
#define TEXT_MAX    1024

static bool has_controls(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        if (*c <= 0x20 || *c == 0x7f) {
            return true;
        }
    }
    return false;
}

/* "https://user:secret@host/…": a colon before the "@" of the host's part. */
static bool has_password(const char *text)
{
    const char *scheme = strstr(text, "://");
    while (scheme != NULL) {
        const char *from = scheme + 3;
        size_t len = strcspn(from, "/ \t\n");
        const char *at = memchr(from, '@', len), *colon = memchr(from, ':', len);
        if (at != NULL && colon != NULL && colon < at) {
            return true;
        }
        scheme = strstr(from, "://");
    }
    return false;
}

/** An address of a repository in which no password stands: who reads the job would read it. */
static bool address_is_good(const char *address)
{
    return address[0] != '\0' && address[0] != '-' && strlen(address) <= ADDRESS_MAX &&
           !has_controls(address) && !has_password(address);
}

static bool is_hash(const char *text, size_t min, size_t max)
{
    size_t len = text != NULL ? strlen(text) : 0;
    return len >= min && len <= max && strspn(text, HEX) == len;
}

static weir_status check_members(const json_t *code, struct weir_error *err)
{
    static const char *const texts[] = {"manifest", "git",        "commit",
                                        "branch",   "repository", "patch"};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)code, key, value)
    {
        bool is_text = false;
        for (size_t i = 0; i < WEIR_ARRAY_LEN(texts); i++) {
            is_text = is_text || strcmp(key, texts[i]) == 0;
        }
        bool is_dirty = strcmp(key, "dirty") == 0;
        if (!is_text && !is_dirty) {
            return weir_error_set(err, WEIR_ERR_INVALID, "$.spec.code.%.60s: unknown field", key);
        }
        if (is_dirty ? !json_is_boolean(value)
                     : !json_is_string(value) || json_string_length(value) > TEXT_MAX) {
            return weir_error_set(err, WEIR_ERR_INVALID, "$.spec.code.%.60s: expected %s", key,
                                  is_dirty ? "true or false" : "a text of at most 1024 bytes");
        }
    }
    return WEIR_OK;
}

weir_status code_check(const json_t *code, struct weir_error *err)
{
    const char *manifest = json_string_value(json_object_get(code, "manifest"));
    const char *git = json_string_value(json_object_get(code, "git"));
    const char *commit = json_string_value(json_object_get(code, "commit"));
    const char *patch = json_string_value(json_object_get(code, "patch"));
    const char *repository = json_string_value(json_object_get(code, "repository"));
    if (code == NULL) {
        return WEIR_OK;
    }
    if (!json_is_object(code) || (manifest == NULL) == (git == NULL)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec.code: expected {\"manifest\"} or {\"git\", \"commit\"}");
    }
    WEIR_TRY(check_members(code, err));
    if (manifest != NULL && !is_hash(manifest, HASH_DIGITS, HASH_DIGITS)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.spec.code.manifest: expected a SHA-256");
    }
    if (patch != NULL && !is_hash(patch, HASH_DIGITS, HASH_DIGITS)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.spec.code.patch: expected a SHA-256");
    }
    if ((git != NULL && !address_is_good(git)) ||
        (repository != NULL && !address_is_good(repository))) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec.code.%s: expected an address of a repository without a "
                              "password: put that into a secret, as variable GIT_TOKEN "
                              "(--secret GIT_TOKEN=NAME)",
                              git != NULL ? "git" : "repository");
    }
    return (git == NULL && commit == NULL) || is_hash(commit, COMMIT_MIN, HASH_DIGITS)
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "$.spec.code.commit: expected %d to %d lower-case hexadecimal "
                                "digits of a commit",
                                COMMIT_MIN, HASH_DIGITS);
}

/* ---- packages ----------------------------------------------------------------------------------- */

/* What would be another thing in another folder. */
static bool is_local(const char *line)
{
    static const char *const starts[] = {"-e",           "--editable", "-r", "--requirement", "-c",
                                         "--constraint", ".",          "/",  "file:"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(starts); i++) {
        if (strncmp(line, starts[i], strlen(starts[i])) == 0) {
            return true;
        }
    }
    return strstr(line, "file://") != NULL;
}

weir_status code_check_python(const char *text, struct weir_error *err)
{
    char line[512];
    size_t number = 1;
    if (text == NULL) {
        return WEIR_OK;
    }
    if (strlen(text) > CODE_PYTHON_MAX_BYTES) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "$.spec.python: at most %zu bytes",
                              CODE_PYTHON_MAX_BYTES);
    }
    for (const char *from = text; *from != '\0'; number++) {
        size_t len = strcspn(from, "\n"), skip = 0;
        while (skip < len && isspace((unsigned char)from[skip])) {
            skip++;
        }
        (void)snprintf(line, sizeof line, "%.*s", (int)WEIR_MIN(len - skip, sizeof line - 1),
                       from + skip);
        if (len - skip >= sizeof line || is_local(line) || has_password(line)) {
            return weir_error_set(
                err, WEIR_ERR_INVALID,
                "$.spec.python: line %zu names a file of the folder, holds a password, or is too "
                "long: packages come from an index (PIP_INDEX_URL may be a secret), and the folder "
                "itself needs no installing",
                number);
        }
        from += len + (from[len] == '\n');
    }
    return WEIR_OK;
}
