#include "store/rights.h"

#include <string.h>

static const struct {
    const char *noun, *verb, *who;
    enum weir_right_scope scope;
} matrix[] = {

#define X(right, noun, verb, scope, who) {noun, verb, who, WEIR_RIGHT_IS_OF_##scope},
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
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "\"%.80s\" is not a role: member, viewer, approver, operator, "
                          "data-scientist, ml-engineer, admin, agent, worker",
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
