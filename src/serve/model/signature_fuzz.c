/*
 * Signatures in JSON, and picture rules and labels that people write. What is accepted must be
 * printed so that it is read again to the same.
 */
#include "signature_private.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_MAX ((size_t)64 << 10)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void print_again(const struct weir_signature *signature, struct weir_arena *arena)
{
    struct weir_signature again;
    json_t *json = weir_signature_json(signature);
    if (json == NULL) {
        abort();
    }
    char *text = weir_json_text(json, arena);
    if (weir_signature_parse(text, strlen(text), "again", arena, &again, NULL) != WEIR_OK) {
        abort();
    }
    json_t *second = weir_signature_json(&again);
    char *text_again = weir_json_text(second, arena);
    if (strcmp(text, text_again) != 0) {
        abort();
    }
    json_decref(json);
    json_decref(second);
}

static void read_rule(const char *text, size_t size, struct weir_arena *arena)
{
    static const struct serve_port port = {
        .name = "x", .dtype = WEIR_DTYPE_FLOAT, .rank = 4, .dims = {-1, 3, -1, -1}};
    struct signature_picture picture;
    json_t *rule;
    if (weir_yaml_parse(text, size, "rule", false, &rule, NULL) == WEIR_OK) {
        if (picture_read(rule, "$", &port, 1, arena, &picture, NULL) == WEIR_OK) {
            json_decref(picture_json(&picture, &port));
        }
        json_decref(rule);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_arena arena;
    struct weir_signature signature;
    weir_arena_init(&arena, 0);
    const char *text = (const char *)data;
    if (size <= INPUT_MAX) {
        if (weir_signature_parse(text, size, "fuzz", &arena, &signature, NULL) == WEIR_OK) {
            print_again(&signature, &arena);
        }
        read_rule(text, size, &arena);
    }
    weir_arena_fini(&arena);
    return 0;
}
