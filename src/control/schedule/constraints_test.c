/**
 * Where the database itself holds a column to a list of words, its record table says the same words:
 * that is what people, OpenAPI and the reference are told. Kinds are held by no constraint; their
 * registries are the only place that lists them.
 */
#include "base/record.h"
#include "deploy/deploy.h"
#include "ion/decision.h"
#include "ion/firing.h"
#include "ion/ion.h"
#include "ion/replica.h"
#include "job/job.h"
#include "notify/notify.h"
#include "nouns/nouns.h"
#include "store/event.h"
#include "store/identity.h"
#include "store/store_fixture.h"
#include "sweep/sweep.h"
#include "track/forgotten.h"
#include "track/logged_model.h"
#include "track/track.h"

#include <string.h>

static struct store_fixture fixture;

static void set_up(void)
{
    fixture_init(&fixture);
    fixture_open(&fixture, (struct weir_store_config){.noun_at = weir_noun_at});
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

static const struct weir_resource *const records[] = {&weir_user_resource,
                                                      &weir_alert_resource,
                                                      &weir_event_resource,
                                                      &weir_run_resource,
                                                      &weir_ion_resource,
                                                      &weir_ion_pipeline_resource,
                                                      &weir_ion_candidate_resource,
                                                      &weir_policy_decision_resource,
                                                      &weir_ion_member_resource,
                                                      &weir_decision_resource,
                                                      &weir_ion_replica_resource,
                                                      &weir_job_resource,
                                                      &weir_task_resource,
                                                      &weir_dataset_resource,
                                                      &weir_deployment_resource,
                                                      &weir_deployment_replica_resource,
                                                      &weir_alert_rule_resource,
                                                      &weir_alert_firing_resource,
                                                      &weir_alert_delivery_resource,
                                                      &weir_forgotten_resource,
                                                      &weir_ion_trigger_resource,
                                                      &weir_sweep_resource,
                                                      &weir_sweep_trial_resource,
                                                      &weir_model_version_resource,
                                                      &weir_logged_model_resource};

/* Columns of which the record tells more or nothing: what only the answer has, and tables that are
 * no records. */
static const struct {
    const char *column, *words;
} others[] = {
    {"ion_candidates.state",
     "PENDING_REVIEW WAITING APPROVED SHADOW CANARY AB SERVING RETIRED REJECTED "
     "ROLLED_BACK DEPLOYING DEPLOY_FAILED"},
    {"outbox.state", "pending done failed"},
    {"disagreements.kind", "live-right candidate-right both-wrong"},
    {"alert_rules.group_by", "none subject rule"},
    {"model_versions.stage", "None Staging Production Archived"}, /* it says more */
};

static const struct weir_field *field_of(const char *table, const char *column)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(records); i++) {
        if (strcmp(records[i]->plural, table) == 0) {
            return weir_resource_field(records[i], column);
        }
    }
    return NULL;
}

/* How many words a text has that blanks and commas part, but for "or". */
static size_t count_words(const char *text)
{
    size_t n = 0;
    while (*(text += strspn(text, ", ")) != '\0') {
        size_t len = strcspn(text, ", ");
        n += len != 2 || strncmp(text, "or", 2) != 0;
        text += len;
    }
    return n;
}

static bool has_word(const char *text, const char *word, size_t word_len)
{
    while (*(text += strspn(text, ", ")) != '\0') {
        size_t len = strcspn(text, ", ");
        if (len == word_len && strncmp(text, word, len) == 0) {
            return true;
        }
        text += len;
    }
    return false;
}

/* `list` begins behind "IN (": 'a', 'b'). */
static void check_list(const char *table, const char *column, const char *list)
{
    char place[128];
    const struct weir_field *field = field_of(table, column);
    const char *told = field != NULL ? field->doc : NULL;
    size_t n = 0, n_more = 0;
    (void)snprintf(place, sizeof place, "%s.%s", table, column);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(others); i++) {
        if (strcmp(others[i].column, place) == 0) {
            told = others[i].words;
            n_more = strcmp(place, "ion_candidates.state") == 0 ? 2 : 0;
        }
    }
    ck_assert_msg(told != NULL, "%s has a constraint and no record", place);
    for (; *list != ')'; list++) {
        if (*list == '\'') {
            size_t len = strcspn(list + 1, "'");
            ck_assert_msg(has_word(told, list + 1, len), "%s: the record does not tell of %.*s",
                          place, (int)len, list + 1);
            list += len + 1;
            n++;
        }
    }
    ck_assert_msg(n + n_more == count_words(told), "%s: the record tells of others: %s", place,
                  told);
}

struct found {
    size_t n;
};

static weir_status check_tables(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct found *found = context;
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, "SELECT name, sql FROM sqlite_schema WHERE type = 'table'",
                            WEIR_NO_BINDS, &row, err));
    for (;;) {
        WEIR_TRY(weir_stmt_step(row, &has_row, err));
        if (!has_row) {
            return WEIR_OK;
        }
        const char *table = weir_stmt_text(row, 0, &fixture.arena);
        const char *sql = weir_stmt_text(row, 1, &fixture.arena);
        while (sql != NULL && (sql = strstr(sql, "CHECK (")) != NULL) {
            char column[64];
            sql += strlen("CHECK (");
            size_t len = strcspn(sql, " ");
            (void)snprintf(column, sizeof column, "%.*s", (int)len, sql);
            if (strncmp(sql + len, " IN (", 5) == 0) {
                check_list(table, column, sql + len + 5);
                found->n++;
            }
        }
    }
}

START_TEST(the_words_of_constraints_are_those_of_the_records)
{
    struct found found = {0};
    fixture_read(&fixture, check_tables, &found);
    ck_assert_uint_ge(found.n, 10);
}

END_TEST

WEIR_TEST_MAIN_WITH("constraints", set_up, tear_down,
                    the_words_of_constraints_are_those_of_the_records)
