#include "ion/firing.h"

#include "store/stmt.h"
#include "store/table.h"

// clang-format off
static const struct weir_field trigger_fields[] = {
    WEIR_FIELD(weir_ion_trigger, id,           TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "ION:PIPELINE:PLACE"),
    WEIR_FIELD(weir_ion_trigger, ion,          TEXT, WEIR_FIELD_READ_ONLY, "", "ION"),
    WEIR_FIELD(weir_ion_trigger, pipeline,     TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Pipeline that it starts"),
    WEIR_FIELD(weir_ion_trigger, position,     INT,  WEIR_FIELD_READ_ONLY, "", "Its place in the pipeline's list, from 0"),
    WEIR_FIELD(weir_ion_trigger, kind,         TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Kind"),
    WEIR_FIELD(weir_ion_trigger, text,         JSON, WEIR_FIELD_READ_ONLY, "", "Kind and options, as the document has them"),
    WEIR_FIELD(weir_ion_trigger, state,        TEXT, WEIR_FIELD_READ_ONLY, "", "ARMED or REMOVED"),
    WEIR_FIELD(weir_ion_trigger, armed_ms,     TIME, WEIR_FIELD_READ_ONLY, "ms", "Since when the document has it"),
    WEIR_FIELD(weir_ion_trigger, next_ms,      TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "Next time of a schedule"),
    WEIR_FIELD(weir_ion_trigger, version,      INT,  WEIR_FIELD_READ_ONLY, "", "Newest version of the pipeline's dataset"),
    WEIR_FIELD(weir_ion_trigger, n_files,      INT,  WEIR_FIELD_READ_ONLY, "", "Files in it"),
    WEIR_FIELD(weir_ion_trigger, n_bytes,      INT,  WEIR_FIELD_READ_ONLY, "bytes", "Its size"),
    WEIR_FIELD(weir_ion_trigger, n_rows,       INT,  WEIR_FIELD_READ_ONLY, "", "Rows of tables in it"),
    WEIR_FIELD(weir_ion_trigger, used_version, INT,  WEIR_FIELD_READ_ONLY, "", "Version that the last run began with"),
    WEIR_FIELD(weir_ion_trigger, used_files,   INT,  WEIR_FIELD_READ_ONLY, "", "Files in that"),
    WEIR_FIELD(weir_ion_trigger, used_bytes,   INT,  WEIR_FIELD_READ_ONLY, "bytes", "Size of that"),
    WEIR_FIELD(weir_ion_trigger, used_rows,    INT,  WEIR_FIELD_READ_ONLY, "", "Rows of tables in that"),
    WEIR_FIELD(weir_ion_trigger, n_fired,      INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "How often it fired"),
    WEIR_FIELD(weir_ion_trigger, fired_ms,     TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When it fired last"),
    WEIR_FIELD(weir_ion_trigger, reason,       TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN | WEIR_FIELD_LAST, "", "Why it fired last"),
    WEIR_FIELD(weir_ion_trigger, updated_ms,   TIME, WEIR_FIELD_READ_ONLY, "ms", "Last change"),
};
static const struct weir_field firing_fields[] = {
    WEIR_FIELD(weir_trigger_firing, id,       TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "ION:NUMBER"),
    WEIR_FIELD(weir_trigger_firing, ion,      TEXT, WEIR_FIELD_READ_ONLY, "", "ION"),
    WEIR_FIELD(weir_trigger_firing, number,   INT,  WEIR_FIELD_READ_ONLY, "", "Counts the ION's firings"),
    WEIR_FIELD(weir_trigger_firing, pipeline, TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Pipeline that it started"),
    WEIR_FIELD(weir_trigger_firing, position, INT,  WEIR_FIELD_READ_ONLY, "", "Place of the trigger in the pipeline's list, from 0"),
    WEIR_FIELD(weir_trigger_firing, kind,     TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Kind of the trigger"),
    WEIR_FIELD(weir_trigger_firing, training, INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Number of the run that it started, or that covers it"),
    WEIR_FIELD(weir_trigger_firing, inputs,   JSON, WEIR_FIELD_READ_ONLY, "", "What the trigger looked at"),
    WEIR_FIELD(weir_trigger_firing, reason,   TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN | WEIR_FIELD_LAST, "", "Why, in words"),
    WEIR_FIELD(weir_trigger_firing, actor,    TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Who started it by hand, or trigger"),
    WEIR_FIELD(weir_trigger_firing, time_ms,  TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN | WEIR_FIELD_FIRST, "ms", "When"),
};
// clang-format on

const struct weir_resource weir_ion_trigger_resource =
    WEIR_RESOURCE("armed trigger", "ion_triggers", weir_ion_trigger, trigger_fields);
const struct weir_resource weir_trigger_firing_resource =
    WEIR_RESOURCE("trigger firing", "trigger_firings", weir_trigger_firing, firing_fields);

static const char sql_expire[] =
    "DELETE FROM trigger_firings WHERE ion = :ion AND number <= :number";

weir_status weir_firing_store(struct weir_txn *txn, const struct weir_trigger_firing *firing,
                              struct weir_error *err)
{
    WEIR_TRY(weir_txn_insert(txn, &weir_trigger_firing_resource, firing, err));
    return weir_txn_exec(txn, sql_expire,
                         WEIR_BINDS(WEIR_BIND_TEXT("ion", firing->ion),
                                    WEIR_BIND_INT("number", firing->number - WEIR_FIRINGS_KEPT)),
                         NULL, err);
}

weir_status weir_firings_list(struct weir_txn *txn, const char *ion, const char *pipeline,
                              size_t limit, struct weir_arena *arena,
                              struct weir_trigger_firing **out, size_t *out_n,
                              struct weir_error *err)
{
    const struct weir_query of_all = {WEIR_FILTERS(WEIR_FILTER_TEXT("ion", EQ, ion)),
                                      .order_by = "number", .is_descending = true, .limit = limit};
    const struct weir_query of_one = {
        WEIR_FILTERS(WEIR_FILTER_TEXT("ion", EQ, ion), WEIR_FILTER_TEXT("pipeline", EQ, pipeline)),
        .order_by = "number", .is_descending = true, .limit = limit};
    void *items;
    WEIR_TRY(weir_txn_list(txn, &weir_trigger_firing_resource, pipeline != NULL ? &of_one : &of_all,
                           arena, &items, out_n, NULL, err));
    *out = items;
    return WEIR_OK;
}
