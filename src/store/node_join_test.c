/* Tokens that nodes join with: random sequences against a model that counts. */
#include "store/identity.h"

#include "base/test_seed.h"
#include "store/store_fixture.h"
#include "store/table.h"

#include <string.h>

#define N_TOKENS 4
#define N_NAMES  12
#define ROUNDS   60
#define STEPS    40
#define END_MS   1000

static struct store_fixture fixture;

/** What a token is good for, and which of the names have joined with it. */
struct model {
    char secret[WEIR_SECRET_BYTES], id[32];
    bool is_of_allocation, has_ended, has_joined[N_NAMES];
    int64_t n_nodes, n_joined;
};

/** Half of the names are an allocation's. */
static const char *name_of(size_t i)
{
    static const char *const names[N_NAMES] = {"tag-a",  "tag-b", "tag-c", "tag-d",
                                               "tag-e",  "tag-f", "tag",   "tag-",
                                               "tagg-a", "a",     "b",     "t-tag-a"};
    return names[i];
}

#define N_OF_TAG 6

struct attempt {
    const char *secret, *node;
    int64_t now_ms;
    weir_status status;
};

/* A token of a node stands for its agent's; a join that fails is given up with all that it did. */
static weir_status join_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct attempt *attempt = context;
    char hash[WEIR_SHA256_TEXT_BYTES], secret[WEIR_SECRET_BYTES];
    static int64_t n;
    int64_t n_tokens;
    struct weir_error why;
    attempt->status = weir_node_join_take(txn, attempt->secret, attempt->node, attempt->now_ms,
                                          &fixture.arena, &why);
    if (attempt->status != WEIR_OK) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_node_count_tokens(txn, attempt->node, &n_tokens, err));
    if (n_tokens > 0) {
        attempt->status = WEIR_ERR_CONFLICT;
        return weir_error_set(err, WEIR_ERR_CONFLICT, "there is one");
    }
    weir_secret_make(secret);
    weir_secret_hash(secret, hash);
    const struct weir_token token = {.id =
                                         weir_arena_printf(&fixture.arena, "t%lld", (long long)n++),
                                     .user = (char *)"agent",
                                     .name = (char *)"node",
                                     .role = (char *)"agent",
                                     .node = (char *)attempt->node,
                                     .secret_hash = hash};
    return weir_txn_insert(txn, &weir_token_resource, &token, err);
}

static weir_status make_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct model *model = context;
    char hash[WEIR_SHA256_TEXT_BYTES];
    weir_secret_make(model->secret);
    weir_secret_hash(model->secret, hash);
    const struct weir_node_join join = {.id = model->id,
                                        .secret_hash = hash,
                                        .created_by = (char *)"ann",
                                        .expires_ms = END_MS,
                                        .n_nodes = model->n_nodes,
                                        .allocation =
                                            model->is_of_allocation ? (char *)"tag" : NULL};
    return weir_node_join_insert(txn, &join, 0, err);
}

static weir_status begin_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    static const char *const rows[] = {"DELETE FROM tokens", "DELETE FROM node_joins"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        WEIR_TRY(weir_txn_exec(txn, rows[i], WEIR_NO_BINDS, NULL, err));
    }
    return WEIR_OK;
}

static weir_status count_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_txn_query_int(txn, "SELECT count(*) FROM tokens WHERE node IS NOT NULL",
                              WEIR_NO_BINDS, 0, context, err);
}

static weir_status end_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    return weir_node_join_end(txn, "tag", 2, err);
}

/* Has any token brought this name in? */
static bool is_node(const struct model *models, size_t name)
{
    bool is_any = false;
    for (size_t i = 0; i < N_TOKENS; i++) {
        is_any = is_any || (models[i].has_joined[name] && !models[i].has_ended);
    }
    return is_any;
}

/* What the rules say, and what follows. */
static bool expect_join(struct model *models, size_t token, size_t name, int64_t now_ms)
{
    struct model *model = &models[token];
    bool is_again = model->has_joined[name];
    bool is_of_tag = name < N_OF_TAG;
    if (now_ms >= END_MS || model->has_ended || (model->is_of_allocation && !is_of_tag)) {
        return false;
    }
    if (is_again) {
        return model->is_of_allocation;
    }
    if (model->n_joined >= model->n_nodes || is_node(models, name)) {
        return false;
    }
    model->has_joined[name] = true;
    model->n_joined++;
    return true;
}

/* Those of the allocation, with all nodes that they let in. */
static void end_allocation(struct model *models)
{
    fixture_write(&fixture, end_in, NULL);
    for (size_t i = 0; i < N_TOKENS; i++) {
        models[i].has_ended = models[i].has_ended || models[i].is_of_allocation;
    }
}

static void play(struct weir_rng *rng)
{
    struct model models[N_TOKENS] = {0};
    int ends_at = (int)weir_rng_below(rng, STEPS);
    fixture_write(&fixture, begin_in, NULL);
    for (size_t i = 0; i < N_TOKENS; i++) {
        (void)snprintf(models[i].id, sizeof models[i].id, "join-%zu", i);
        models[i].n_nodes = 1 + (int64_t)weir_rng_below(rng, 4);
        models[i].is_of_allocation = weir_rng_below(rng, 2) == 0;
        fixture_write(&fixture, make_in, &models[i]);
    }
    for (int i = 0; i < STEPS; i++) {
        size_t token = weir_rng_below(rng, N_TOKENS), name = weir_rng_below(rng, N_NAMES);
        struct attempt attempt = {.secret = models[token].secret,
                                  .node = name_of(name),
                                  .now_ms = (int64_t)weir_rng_below(rng, 20) == 0 ? END_MS : 2};
        int64_t n_tokens = 0, n_nodes = 0;
        if (i == ends_at) {
            end_allocation(models);
        }
        weir_status ignored = weir_store_write(fixture.store, join_in, &attempt, &fixture.err);
        (void)ignored; /* a name that is taken: given up */
        bool is_good = expect_join(models, token, name, attempt.now_ms);
        ck_assert_msg((attempt.status == WEIR_OK) == is_good, "%s with token %zu of %lld: %d",
                      attempt.node, token, (long long)models[token].n_nodes, attempt.status);
        fixture_write(&fixture, count_in, &n_tokens);
        for (size_t k = 0; k < N_TOKENS; k++) {
            ck_assert_int_le(models[k].n_joined, models[k].n_nodes);
            n_nodes += models[k].has_ended ? 0 : models[k].n_joined;
        }
        ck_assert_int_eq(n_tokens, n_nodes);
    }
}

START_TEST(whatever_order_nodes_join_in_a_token_lets_in_no_more_than_it_says)
{
    struct weir_rng rng;
    (void)test_seed(&rng);
    for (int i = 0; i < ROUNDS; i++) {
        play(&rng);
    }
}

END_TEST

static weir_status populate(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    return weir_txn_insert(txn, &weir_user_resource,
                           &(struct weir_user){.name = (char *)"agent",
                                               .kind = (char *)"service",
                                               .role = (char *)"agent"},
                           err);
}

static void set_up(void)
{
    fixture_init(&fixture);
    fixture_open(&fixture, (struct weir_store_config){0});
    fixture_write(&fixture, populate, NULL);
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

WEIR_TEST_MAIN_WITH("node_join", set_up, tear_down,
                    whatever_order_nodes_join_in_a_token_lets_in_no_more_than_it_says)
