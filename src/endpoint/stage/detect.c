#include "endpoint/stage/detect.h"

#include "endpoint/stage.h"

#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 255

static const struct weir_option options[] = {
    WEIR_OPT_JSON(weir_stage_detect, model, "model", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "Registered model that finds: NAME (its newest version), NAME@ALIAS or "
                  "NAME/VERSION"),
    WEIR_OPT_JSON(weir_stage_detect, as, "as", TEXT, 0, NULL, 0, 0,
                  "What its outputs are: centernet, yunet, scrfd, retinaface, yolo, ssd, detr …; "
                  "without it they are recognised by names and shapes"),
    WEIR_OPT_JSON(
        weir_stage_detect, threshold, "threshold", F64, 0, "0", 0, 1,
        "Score from which on something is found; 0: as is usual for what its outputs are"),
    WEIR_OPT_JSON(weir_stage_detect, overlap, "overlap", F64, 0, "0", 0, 1,
                  "Of two that overlap by more the weaker is left out; 0: as is usual"),
    WEIR_OPT_JSON(weir_stage_detect, min_face, "min-face", INT, 0, "0", 0, 4096,
                  "Least width in pixels of the picture of what is to be found; 0: no wish"),
    WEIR_OPT_JSON(weir_stage_detect, tiles, "tiles", INT, 0, "1", 1, 64,
                  "Parts that a picture may be looked at in, so that small things are found"),
    WEIR_OPT_JSON(weir_stage_detect, width, "width", INT, 0, "0", 0, 4096,
                  "Of the model's input where it leaves it free; 0: by min_face"),
    WEIR_OPT_JSON(weir_stage_detect, height, "height", INT, 0, "0", 0, 4096,
                  "Of the model's input where it leaves it free; 0: by min_face"),
    WEIR_OPT_JSON(
        weir_stage_detect, classes, "classes", TEXTS, 0, NULL, 0, 0,
        "Which of the model's classes count, by its labels, or by their numbers from 0 on "
        "where it has none; without it all"),
    WEIR_OPT_JSON(weir_stage_detect, options, "options", JSON, 0, NULL, 0, 0,
                  "More about outputs and input, an object: order of colours, scale, mean …"),
};

static const struct weir_stage_facts facts = {.takes = WEIR_STAGE_TAKES(PICTURE),
                                              .gives = WEIR_STAGE_OBJECTS};

const struct weir_kind weir_stage_detect_kind = {
    .name = "detect",
    .doc = "A second model finds faces or other things in the picture; what follows works on each "
           "of them.",
    WEIR_KIND_OPTIONS(weir_stage_detect, options),
    .ops = &facts,
};

weir_status weir_detector_name_parse(const char *text, const char *where, struct weir_arena *arena,
                                     struct weir_detector_name *out, struct weir_error *err)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t n = strspn(text, letters);
    const char *rest = text + n + (text[n] != '\0');
    bool has_alias = text[n] == '@' && rest[0] != '\0' && strlen(rest) <= NAME_MAX_BYTES &&
                     rest[strspn(rest, letters)] == '\0';
    size_t n_digits = strspn(rest, "0123456789");
    bool has_version =
        text[n] == '/' && n_digits > 0 && n_digits < 16 && rest[n_digits] == '\0' && rest[0] != '0';
    if (n == 0 || n > NAME_MAX_BYTES || (text[n] != '\0' && !has_alias && !has_version)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: \"%.80s\" is not NAME, NAME@ALIAS or NAME/VERSION of a model",
                              where, text);
    }
    *out = (struct weir_detector_name){.name = weir_arena_printf(arena, "%.*s", (int)n, text),
                                       .alias = has_alias ? weir_arena_strdup(arena, rest) : NULL,
                                       .version = has_version ? strtoll(rest, NULL, 10) : 0};
    return WEIR_OK;
}
