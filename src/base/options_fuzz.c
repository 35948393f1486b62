/* Any JSON as options of every type: refused by place, or every member within its bounds. */
#include "base/options.h"

#include "base/macros.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct sample {
    char *text, *word, *list;
    int64_t integer, free;
    double number;
    bool is_set;
    const json_t *texts, *map, *any;
};

// clang-format off
static const struct weir_option options[] = {
    WEIR_OPT_JSON(sample, text,    "text",    TEXT,  WEIR_OPTION_REQUIRED, NULL, 0, 0, "Text"),
    WEIR_OPT_JSON(sample, list,    "list",    LIST,  0, NULL, 0, 0, "Lines"),
    WEIR_OPT_JSON(sample, integer, "integer", INT,   0, "3", -5, 7, "Integer"),
    WEIR_OPT_JSON(sample, free,    "the-free", INT,  0, NULL, 0, 0, "Unbounded integer"),
    WEIR_OPT_JSON(sample, number,  "number",  F64,   0, "0.5", 0, 1, "Number"),
    WEIR_OPT_JSON(sample, is_set,  "is-set",  BOOL,  0, NULL, 0, 0, "Truth"),
    WEIR_OPT_JSON(sample, texts,   "texts",   TEXTS, 0, NULL, 0, 0, "Strings"),
    WEIR_OPT_JSON(sample, map,     "map",     MAP,   0, NULL, 0, 0, "Strings by name"),
    WEIR_OPT_JSON(sample, any,     "any",     JSON,  0, NULL, 0, 0, "Anything"),
    { .name = "word", .type = WEIR_OPTION_TEXT, .offset = offsetof(struct sample, word), .fallback = "a",
      .words = WEIR_WORDS("a", "b"), .flags = WEIR_OPTION_SETTINGS, .doc = "One of two" },
};

// clang-format on

static bool is_sane(const struct sample *sample)
{
    return sample->text != NULL && sample->text[0] != '\0' &&
           strlen(sample->text) <= WEIR_OPTION_TEXT_MAX_BYTES && sample->integer >= -5 &&
           sample->integer <= 7 && sample->number >= 0 && sample->number <= 1 &&
           (sample->word[0] == 'a' || sample->word[0] == 'b') &&
           (sample->word[1] == '\0' || sample->word[1] == ':') &&
           (sample->texts == NULL || json_is_array(sample->texts)) &&
           (sample->map == NULL || json_is_object(sample->map));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_arena arena;
    struct weir_error err = {0};
    struct sample sample = {0};
    json_t *json;
    if (weir_json_parse((const char *)data, size, "fuzz", &json, &err) != WEIR_OK) {
        return 0;
    }
    weir_arena_init(&arena, 0);
    weir_status status = weir_options_read(options, WEIR_ARRAY_LEN(options), json, "$.here", "kind",
                                           &arena, &sample, &err);
    if (status == WEIR_OK ? !is_sane(&sample) : strncmp(err.message, "$.here", 6) != 0) {
        abort();
    }
    weir_arena_fini(&arena);
    json_decref(json);
    return 0;
}
