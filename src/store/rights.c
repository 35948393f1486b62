#include "store/rights.h"

#include "base/names.h"

#include <string.h>

static const struct {
    const char *noun, *verb, *who, *text, *reversed;
    enum weir_right_scope scope;
} matrix[] = {

#define X(right, noun, verb, scope, who)                                                           \
    {noun, verb, who, verb " " noun, noun " " verb, WEIR_RIGHT_IS_OF_##scope},
#include "store/rights.def"
#undef X
};

_Static_assert(WEIR_RIGHT_COUNT < 64, "a set of rights is a word");

/** Name, and letter in the matrix; 0: every right. */
static const struct {
    const char *text;
    char letter;
} roles[WEIR_ROLE_COUNT] = {
    [WEIR_ROLE_MEMBER] = {"member", 'n'},
    [WEIR_ROLE_VIEWER] = {"viewer", 'v'},
    [WEIR_ROLE_APPROVER] = {"approver", 'a'},
    [WEIR_ROLE_OPERATOR] = {"operator", 'o'},
    [WEIR_ROLE_DATA_SCIENTIST] = {"data-scientist", 'd'},
    [WEIR_ROLE_ML_ENGINEER] = {"ml-engineer", 'm'},
    [WEIR_ROLE_ADMIN] = {"admin", '\0'},
    [WEIR_ROLE_AGENT] = {"agent", 'g'},
    [WEIR_ROLE_WORKER] = {"worker", 'w'},
};

const char *weir_right_noun(enum weir_right right)
{
    return matrix[right].noun;
}

const char *weir_right_verb(enum weir_right right)
{
    return matrix[right].verb;
}

enum weir_right_scope weir_right_scope(enum weir_right right)
{
    return matrix[right].scope;
}

weir_rights weir_rights_of_projects(void)
{
    weir_rights rights = 0;
    for (size_t i = 0; i < WEIR_RIGHT_COUNT; i++) {
        rights |= matrix[i].scope == WEIR_RIGHT_IS_OF_PROJECT ? WEIR_RIGHTS_OF(i) : 0;
    }
    return rights;
}

weir_status weir_right_from_text(const char *text, enum weir_right *out, struct weir_error *err)
{
    struct weir_nearest nearest = {0};
    for (size_t i = 0; i < WEIR_RIGHT_COUNT; i++) {
        if (strcmp(text, matrix[i].text) == 0 || strcmp(text, matrix[i].reversed) == 0) {
            *out = (enum weir_right)i;
            return WEIR_OK;
        }
        weir_nearest_see(&nearest, text, strlen(text), matrix[i].text);
        weir_nearest_see(&nearest, text, strlen(text), matrix[i].reversed);
    }
    return weir_error_set(
        err, WEIR_ERR_INVALID, "there is no right \"%.80s\"%s%s%s: `weir explain roles` shows all",
        text, nearest.name != NULL ? "; did you mean \"" : "",
        nearest.name != NULL ? nearest.name : "", nearest.name != NULL ? "\"?" : "");
}

char *weir_rights_text(weir_rights rights, const char *between, struct weir_arena *arena)
{
    char *text = weir_arena_strdup(arena, "");
    for (size_t i = 0; i < WEIR_RIGHT_COUNT; i++) {
        if (rights & WEIR_RIGHTS_OF(i)) {
            text = weir_arena_printf(arena, "%s%s%s", text, *text != '\0' ? between : "",
                                     matrix[i].text);
        }
    }
    return text;
}

weir_rights weir_rights_read(const char *text)
{
    weir_rights rights = 0;
    size_t next = 0; /* they were written in the matrix's order: the next is mostly right behind */
    while (*text != '\0') {
        size_t len = strcspn(text, ",");
        for (size_t n = 0; n < WEIR_RIGHT_COUNT; n++) {
            size_t i = (next + n) % WEIR_RIGHT_COUNT;
            if (strncmp(text, matrix[i].text, len) == 0 && matrix[i].text[len] == '\0') {
                rights |= WEIR_RIGHTS_OF(i);
                next = i + 1;
                break;
            }
        }
        text += len + (text[len] == ',');
    }
    return rights;
}

weir_rights weir_rights_close(weir_rights rights)
{
    weir_rights closed = rights;
    for (size_t i = 0; i < WEIR_RIGHT_COUNT; i++) {
        for (size_t k = 0; k < WEIR_RIGHT_COUNT; k++) {
            bool looks = strcmp(matrix[i].verb, "read") == 0 &&
                         strcmp(matrix[k].verb, "look") == 0 &&
                         strcmp(matrix[i].noun, matrix[k].noun) == 0;
            closed |= looks && (rights & WEIR_RIGHTS_OF(i)) ? WEIR_RIGHTS_OF(k) : 0;
        }
    }
    if (rights & WEIR_RIGHTS_OF(WEIR_RIGHT_MODELS_NAME)) {
        closed |= WEIR_RIGHTS_OF(WEIR_RIGHT_MODELS_LABEL);
    }
    return closed;
}

const char *weir_role_text(enum weir_role role)
{
    return roles[role].text;
}

weir_status weir_role_from_text(const char *text, enum weir_role *out, struct weir_error *err)
{
    text = text != NULL ? text : "";
    for (size_t i = 0; i < WEIR_ROLE_COUNT; i++) {
        if (strcmp(text, roles[i].text) == 0) {
            *out = (enum weir_role)i;
            return WEIR_OK;
        }
    }
    if (strcmp(text, "scientist") == 0) { /* old word */
        *out = WEIR_ROLE_ML_ENGINEER;
        return WEIR_OK;
    }
    return weir_error_set(
        err, WEIR_ERR_INVALID,
        "\"%.80s\" is not a role: member, viewer, approver, operator, "
        "data-scientist, ml-engineer, admin, agent, worker, or a custom one (weir get "
        "roles)",
        text);
}

weir_rights weir_role_rights(enum weir_role role)
{
    weir_rights rights = 0;
    for (size_t i = 0; i < WEIR_RIGHT_COUNT; i++) {
        bool has = roles[role].letter == '\0' || strchr(matrix[i].who, roles[role].letter) != NULL;
        rights |= has ? WEIR_RIGHTS_OF(i) : 0;
    }
    return rights;
}

bool weir_role_is_of_projects(enum weir_role role)
{
    return role != WEIR_ROLE_MEMBER && role != WEIR_ROLE_AGENT && role != WEIR_ROLE_WORKER;
}

bool weir_role_covers(enum weir_role role, enum weir_role needed)
{
    return (weir_role_rights(needed) & ~weir_role_rights(role)) == 0;
}
