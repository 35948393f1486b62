/* Who may give which role, and which routes a role opens, against the matrix read anew. */
#include "api/caller_fixture.h"
#include "api/routes.h"

#include "base/rng.h"
#include "base/test_main.h"

static bool has_text(const json_t *list, const char *text)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (strcmp(json_string_value(json_array_get(list, i)), text) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- who may give what: random roles and callers against the matrix read anew ------------------ */

enum { N_PEOPLE = 4, N_GRANTEES = N_PEOPLE + 1, N_PROJECTS = 2, N_ROLES = 5, N_STEPS = 400 };

/* The matrix once more, without the functions under test: texts, and letters of who. */
static const struct {
    const char *text, *noun, *verb, *who;
    bool is_of_project;
} matrix[] = {

#define PROJECT                          true
#define PLATFORM                         false
#define SELF                             false
#define X(right, noun, verb, scope, who) {verb " " noun, noun, verb, who, scope},
#include "store/rights.def"
#undef X
#undef PROJECT
#undef PLATFORM
#undef SELF
};

enum { N_RIGHTS = WEIR_ARRAY_LEN(matrix) };

static const struct {
    const char *name;
    char letter;
} own_roles[] = {{"viewer", 'v'},         {"approver", 'a'},    {"operator", 'o'},
                 {"data-scientist", 'd'}, {"ml-engineer", 'm'}, {"admin", '*'}};

enum { N_OWN = WEIR_ARRAY_LEN(own_roles), N_ALL_ROLES = N_OWN + N_ROLES };

/** What should be so. A role is a number: Weir's own, then those that were defined; -1: none. */
struct world {
    struct weir_rng rng;
    bool defined[N_ROLES][N_RIGHTS];
    int granted[N_PROJECTS][N_GRANTEES]; /**< The last grantee is a group. */
    bool is_in_group[N_PEOPLE];
    int limit[N_PEOPLE]; /**< Of a second token. */
    char bearer[N_PEOPLE][BEARER_BYTES], limited[N_PEOPLE][BEARER_BYTES];
    size_t n_allowed, n_refused;
};

static struct world world;

static bool letter_has(char letter, size_t right)
{
    return letter == '*' || strchr(matrix[right].who, letter) != NULL;
}

static bool role_has(int role, size_t right)
{
    return role >= 0 && (role < N_OWN ? letter_has(own_roles[role].letter, right)
                                      : world.defined[role - N_OWN][right]);
}

/* As a token's limit a custom role leaves on the platform what members have. */
static bool limit_has(int role, size_t right)
{
    return role_has(role, right) || (role >= N_OWN && letter_has('n', right));
}

static bool person_has(size_t person, bool is_limited, size_t project, size_t right)
{
    const int *granted = world.granted[project];
    bool has = role_has(granted[person], right) ||
               (world.is_in_group[person] && role_has(granted[N_PEOPLE], right));
    return has && (!is_limited || limit_has(world.limit[person], right));
}

static size_t right_of(const char *text)
{
    size_t i = 0;
    while (i < N_RIGHTS && strcmp(matrix[i].text, text) != 0) {
        i++;
    }
    ck_assert_uint_lt(i, N_RIGHTS);
    return i;
}

static const char *name_of(int role)
{
    static char names[N_ROLES][16];
    if (role < N_OWN) {
        return own_roles[role].name;
    }
    (void)snprintf(names[role - N_OWN], sizeof names[0], "r%d", role - N_OWN);
    return names[role - N_OWN];
}

static bool chance(unsigned pct)
{
    return weir_rng_below(&world.rng, 100) < pct;
}

/* A random set, and often the right to give; with looking where it reads. */
static void define_at_random(int i, const char *method)
{
    char body[4096];
    bool *has = world.defined[i];
    unsigned pct = (unsigned)weir_rng_below(&world.rng, 100);
    size_t len = 0;
    for (size_t k = 0; k < N_RIGHTS; k++) {
        has[k] = matrix[k].is_of_project && chance(pct);
    }
    has[right_of("read projects")] = true;
    has[right_of("grant projects")] = chance(60);
    for (size_t k = 0; k < N_RIGHTS; k++) {
        if (has[k]) {
            len += (size_t)snprintf(body + len, sizeof body - len, "%s\"%s\"", len > 0 ? "," : "",
                                    matrix[k].text);
        }
    }
    ck_assert_uint_lt(len, sizeof body);
    has[right_of("label models")] |= has[right_of("name models")];
    for (size_t k = 0; k < N_RIGHTS; k++) {
        for (size_t l = 0; l < N_RIGHTS; l++) {
            has[l] = has[l] || (has[k] && strcmp(matrix[k].verb, "read") == 0 &&
                                strcmp(matrix[l].verb, "look") == 0 &&
                                strcmp(matrix[k].noun, matrix[l].noun) == 0);
        }
    }
    bool is_new = strcmp(method, "POST") == 0;
    EXPECT(200, "%s " API "/roles%s%s\n\n{%s%s%s\"rights\":[%s]}", method, is_new ? "" : "/",
           is_new ? "" : name_of(N_OWN + i), is_new ? "\"name\":\"" : "",
           is_new ? name_of(N_OWN + i) : "", is_new ? "\"," : "", body);
}

static void make_world(uint64_t seed)
{
    memset(&world, 0, sizeof world);
    weir_rng_init(&world.rng, seed, 0);
    for (int i = 0; i < N_ROLES; i++) {
        define_at_random(i, "POST");
    }
    for (int p = 0; p < N_PROJECTS; p++) {
        EXPECT(200, "POST " API "/projects\n\n{\"name\":\"p%d\"}", p);
        for (int g = 0; g < N_GRANTEES; g++) {
            world.granted[p][g] = -1;
        }
    }
    EXPECT(200, "POST " API "/groups\n\n{\"name\":\"u%d\"}", N_PEOPLE);
    for (int i = 0; i < N_PEOPLE; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "u%d", i);
        EXPECT(200,
               "POST " API "/users\n\n{\"name\":\"%s\",\"kind\":\"person\",\"role\":"
               "\"member\"}",
               name);
        EXPECT(200, "POST " API "/tokens\n\n{\"user\":\"%s\",\"name\":\"t\",\"role\":\"admin\"}",
               name);
        (void)snprintf(world.bearer[i], BEARER_BYTES, "Bearer %s", said_text("secret"));
        world.limit[i] = (int)weir_rng_below(&world.rng, N_ALL_ROLES);
        EXPECT(200, "POST " API "/tokens\n\n{\"user\":\"%s\",\"name\":\"l\",\"role\":\"%s\"}", name,
               name_of(world.limit[i]));
        (void)snprintf(world.limited[i], BEARER_BYTES, "Bearer %s", said_text("secret"));
        world.is_in_group[i] = chance(50);
        if (world.is_in_group[i]) {
            EXPECT(200, "PUT " API "/groups/u%d/members/%s", N_PEOPLE, name);
        }
    }
}

static bool has_all_of(size_t person, bool is_limited, size_t project, int role)
{
    for (size_t right = 0; right < N_RIGHTS; right++) {
        if (matrix[right].is_of_project && role_has(role, right) &&
            !person_has(person, is_limited, project, right)) {
            return false;
        }
    }
    return true;
}

/* Somebody gives a role, or takes one (-1). It must be allowed exactly if they may give here, and have
 * all that is given and all that is taken. */
static void give(size_t person, bool is_limited, size_t project, size_t to, int role)
{
    const char *bearer = is_limited ? world.limited[person] : world.bearer[person];
    const char *kind = to == N_PEOPLE ? "group" : "user";
    int *now = &world.granted[project][to];
    bool may = person_has(person, is_limited, project, right_of("grant projects")) &&
               has_all_of(person, is_limited, project, role) &&
               has_all_of(person, is_limited, project, *now);
    int status =
        role >= 0
            ? ask_as(bearer, "PUT " API "/projects/p%zu/members/%s/u%zu\n\n{\"role\":\"%s\"}",
                     project, kind, to, name_of(role))
            : ask_as(bearer, "DELETE " API "/projects/p%zu/members/%s/u%zu", project, kind, to);
    bool is_done = status == 200 || status == 204;
    bool is_nothing = role < 0 && *now < 0; /* 404 for whoever may */
    ck_assert_msg(is_done || status == 403 || status == 404, "%d", status);
    ck_assert_msg(is_done == (may && !is_nothing), "u%zu%s gives %s to u%zu in p%zu: %d %s", person,
                  is_limited ? " (limited)" : "", role >= 0 ? name_of(role) : "nothing", to,
                  project, status, said_text("error.message"));
    world.n_allowed += is_done;
    world.n_refused += !is_done;
    *now = is_done ? role : *now;
}

/* What the server says that they may is what the matrix says. */
static void check_person(size_t person, bool is_limited)
{
    char path[32];
    EXPECT_STATUS(200, ask_as(is_limited ? world.limited[person] : world.bearer[person],
                              "GET " API "/session"));
    ck_assert_str_eq(said_text("role"), "member");
    for (size_t project = 0; project < N_PROJECTS; project++) {
        (void)snprintf(path, sizeof path, "projects.p%zu", project);
        size_t n = 0;
        for (size_t right = 0; right < N_RIGHTS; right++) {
            bool has = person_has(person, is_limited, project, right);
            ck_assert_msg(has_text(said(path), matrix[right].text) == has, "u%zu%s in p%zu: %s",
                          person, is_limited ? " (limited)" : "", project, matrix[right].text);
            n += has;
        }
        ck_assert_uint_eq(json_array_size(said(path)), n);
    }
}

START_TEST(nobody_gives_rights_that_they_do_not_have)
{
    uint64_t seed;
    const char *fixed = getenv("WEIR_TEST_SEED");
    weir_random_bytes(&seed, sizeof seed);
    seed = fixed != NULL ? strtoull(fixed, NULL, 10) : seed;
    printf("WEIR_TEST_SEED=%llu\n", (unsigned long long)seed);
    make_world(seed);
    /* Rarely a world lets nobody give anything for long: it goes on until somebody does. */
    for (int step = 0; step < WEIR_TEST_TIMES(N_STEPS, N_STEPS / 4) || world.n_allowed == 0;
         step++) {
        ck_assert_int_lt(step, 100 * N_STEPS);
        size_t person = weir_rng_below(&world.rng, N_PEOPLE);
        size_t project = weir_rng_below(&world.rng, N_PROJECTS);
        size_t to = weir_rng_below(&world.rng, N_GRANTEES);
        bool is_limited = chance(30);
        int role = chance(15) ? -1 : (int)weir_rng_below(&world.rng, N_ALL_ROLES);
        if (chance(12)) {
            define_at_random((int)weir_rng_below(&world.rng, N_ROLES), "PUT");
        } else if (chance(25) && role >= 0) { /* the admin has all, and gives all */
            EXPECT(200, "PUT " API "/projects/p%zu/members/%s/u%zu\n\n{\"role\":\"%s\"}", project,
                   to == N_PEOPLE ? "group" : "user", to, name_of(role));
            world.granted[project][to] = role;
        } else {
            give(person, is_limited, project, to, role);
            EXPECT_STATUS(
                403, ask_as(world.bearer[person], "PUT " API "/roles/r0\n\n{\"like\":\"admin\"}"));
        }
        check_person(weir_rng_below(&world.rng, N_PEOPLE), chance(50));
    }
    ck_assert_uint_gt(world.n_refused, 0);
}

END_TEST

/* ---- each route, with each right alone --------------------------------------------------------- */

/* What a role of this one right gives, besides what every member has. */
static bool gives(size_t own, size_t right)
{
    return own == right || letter_has('n', right) ||
           (own == right_of("name models") && right == right_of("label models")) ||
           (strcmp(matrix[own].verb, "read") == 0 && strcmp(matrix[right].verb, "look") == 0 &&
            strcmp(matrix[own].noun, matrix[right].noun) == 0);
}

static int call_route(const struct weir_route *route, const char *bearer)
{
    char path[256], *to = path;
    for (const char *p = route->pattern; *p != '\0' && to < path + sizeof path - 1; p++) {
        *to++ = *p == '{' ? 'x' : *p;
        p += *p == '{' ? strcspn(p, "}") : 0;
    }
    *to = '\0';
    callers.may_wait = true;
    int status = ask_as(bearer, "%s %s", route->method, path);
    callers.may_wait = false;
    return status;
}

/* What the paths name is not there: who may call is told so, or what is wrong with the request. */
static void check_routes(size_t own, const char *bearer)
{
    const struct weir_route *route;
    for (size_t i = 0; (route = weir_route_at(api_routes, i)) != NULL; i++) {
        if ((route->flags & ROUTE_OPEN) != 0 || letter_has('n', route->right)) {
            continue;
        }
        int status = call_route(route, bearer);
        bool is_given = gives(own, route->right);
        bool is_look = strcmp(route->method, "GET") == 0;
        ck_assert_msg(is_given || status == 403, "\"%s\" opens %s %s: %d", matrix[own].text,
                      route->method, route->pattern, status);
        ck_assert_msg(!is_given || !is_look || status != 403, "\"%s\" does not open %s %s: %s",
                      matrix[own].text, route->method, route->pattern, said_text("error.message"));
    }
}

START_TEST(a_role_of_one_right_opens_the_routes_of_that_right_and_no_others)
{
    char sam[BEARER_BYTES];
    make_caller("sam", "member", "", sam);
    EXPECT(200, "POST " API "/roles\n\n{\"name\":\"one\",\"like\":\"viewer\"}");
    EXPECT(200, "PUT " API "/projects/default/members/user/sam\n\n{\"role\":\"one\"}");
    for (size_t own = 0; own < N_RIGHTS; own++) {
        if (matrix[own].is_of_project) {
            EXPECT(200, "PUT " API "/roles/one\n\n{\"rights\":[\"%s\"]}", matrix[own].text);
            check_routes(own, sam);
        }
    }
}

END_TEST

/* An ION runs jobs, and more by its kinds of pipelines: a deputy of whoever applies it. */
static const struct {
    const char *pipeline, *also;
} deputies[] = {
    {"{\"name\":\"t\",\"type\":\"training\",\"dataset\":\"faces\",\"model\":\"lenet\"}",
     "register models"},
    {"{\"name\":\"c\",\"type\":\"preparation\",\"dataset\":\"faces\",\"output\":\"clean\","
     "\"parameters\":{\"argv\":[\"true\"]}}",
     "change datasets"}};

START_TEST(an_ion_does_no_more_than_who_applies_it)
{
    static const char *const some[] = {"submit jobs", "register models", "change datasets"};
    char bearer[BEARER_BYTES];
    make_caller("ida", "member", "", bearer);
    EXPECT(200, "POST " API "/roles\n\n{\"name\":\"applier\",\"rights\":[\"apply ions\"]}");
    EXPECT(200, "PUT " API "/projects/default/members/user/ida\n\n{\"role\":\"applier\"}");
    for (unsigned set = 0; set < 8; set++) {
        char rights[256] = "\"apply ions\"";
        for (unsigned i = 0; i < 3; i++) {
            size_t n = strlen(rights);
            if (set >> i & 1) {
                (void)snprintf(rights + n, sizeof rights - n, ",\"%s\"", some[i]);
            }
        }
        EXPECT(200, "PUT " API "/roles/applier\n\n{\"rights\":[%s]}", rights);
        for (size_t i = 0; i < WEIR_ARRAY_LEN(deputies); i++) {
            const char *also = deputies[i].also;
            bool may = (set & 1) != 0 && strstr(rights, also) != NULL;
            int status =
                ask_as(bearer, "POST " API "/ions?dry_run=1\n\n{\"name\":\"x\",\"pipelines\":[%s]}",
                       deputies[i].pipeline);
            ck_assert_msg((status != 403) == may, "%d with %s for %s: %s", status, rights,
                          deputies[i].pipeline, said_text("error.message"));
        }
    }
}

END_TEST

WEIR_TEST_MAIN_WITH("role_rights", callers_open, callers_close,
                    nobody_gives_rights_that_they_do_not_have,
                    a_role_of_one_right_opens_the_routes_of_that_right_and_no_others,
                    an_ion_does_no_more_than_who_applies_it)
