/**
 * Nouns: what is known of each table beside its columns, said once.
 *
 * A *noun* is a table of the database. Its description says whose its rows are, by which *rule* they go in time (or why
 * none is needed), which of them a snapshot of an ION takes, and what of them is forgotten with a person. A description
 * stands in the noun's own file; each domain lists its tables in nouns.def, and nouns/nouns.h has them all. Who keeps,
 * takes, forgets or hides rows (store/row_scope.h) goes through that list and names no table. So a new table is three
 * edits: its migration, its noun's file, and its line in the list of its domain:
 *
 *     const struct weir_noun weir_noun_kpi = {"kpis", WEIR_OF(ion, ions, name),
 *         .rules = {WEIR_RULE("kpis", "Business figures of IONs", "The oldest go first.", 90, …)},
 *         .captured = WEIR_CAPTURED("kpis", 130, .resource = &weir_kpi_resource, .by = "ion", …)};
 *
 * Constants: any thread. SQL in a description is portable.
 */
#ifndef WEIR_STORE_NOUN_H
#define WEIR_STORE_NOUN_H

#include "base/record.h"
#include "store/chain.h"

#define WEIR_DAYS(n) ((int64_t)(n)*86400000)
#define WEIR_MB(n)   ((int64_t)(n)*1000000)

/** SQL of a job, or a sweep, that is over; and of an ION's candidate that holds what it names. */
#define WEIR_WORK_OVER_SQL        "state IN ('SUCCEEDED', 'FAILED', 'CANCELLED')"
#define WEIR_CANDIDATE_IN_USE_SQL "state NOT IN ('RETIRED', 'REJECTED', 'ROLLED_BACK')"

/** How old and how large a kind may become; negative: no bound. */
struct weir_retain_limit {
    int64_t keep_ms;
    int64_t max_bytes;
};

/** How the rows that go are found. */
enum weir_rows_by {
    WEIR_ROWS_KEYED,    /**< By key, each with what belongs to it. */
    WEIR_ROWS_NUMBERED, /**< By `seq`, in ranges: many, in the order in which they came. */
    WEIR_ROWS_TIMED,    /**< By their time, all of one time a few at once. */
};

/** A rule of retention. Rows that may go are those of `where` and `may`; the oldest go first. */
struct weir_retain_rule {
    const char *name; /**< "decisions": in settings, answers and on the command line. */
    const char *what; /**< What it is. */
    const char *rule; /**< When it goes. */
    int place;        /**< In lists: smaller comes first. */
    struct weir_retain_limit limit; /**< Default. */
    /** What a row takes with its indexes, on average: their size is reckoned with it. Files: 0, and nothing of the rest but
     *  is_of_project. */
    int64_t row_bytes;
    int64_t
        n_entries; /**< B-tree entries of a row, of several tables the most: itself, its indexes. */
    bool is_of_project; /**< A project may keep them for a time of its own. */
    enum weir_rows_by by;
    enum weir_trail trail; /**< Numbered, of the audit: what goes leaves a mark in its chain. */
    const char *time;      /**< Column by which they age. */
    const char *key;       /**< Keyed: column, NULL: "id". Timed: the columns of the table's key. */
    const char *tie;       /**< Keyed: what orders rows of the same time. NULL: the key. */
    /** Keyed: the tables that key, time, where, may and a column `project` are of. NULL: the noun's. */
    const char *from;
    const char *where; /**< Rows that the rule is about, in SQL. NULL: all. */
    const char *may;   /**< Which of them may go, in SQL. NULL: all. */
    const char *count; /**< How many rows there are, in SQL. NULL: as many as `where` says. */
    /** Keyed: how many rows keys stand for, in SQL that the keys' parentheses follow. NULL: one each. */
    const char *counted;
    /** Keyed: SQL that removes all of :key, one after the other, each a few rows (:n) at once and until none is left. What
     *  the last one takes counts. NULL: the row with the key. */
    const char *remove[10];
};

/** A row that is one of this column of another table's is of that one's project. */
struct weir_row_of {
    const char *column, *table, *key;
};

/** How a snapshot of an ION takes the rows of a table. */
struct weir_captured {
    const char *name; /**< "events": of the file rows/events.jsonl. */
    int place;        /**< In the file: smaller comes first. */
    const struct weir_resource *resource;
    const char *by;   /**< Column that names the ION, or "subject". NULL: what other tables name. */
    const char *time; /**< Column of its time; NULL: all rows. */
    bool since_always; /**< Rows before the span too. */
    const char *ended; /**< Column of a time of whose rows those before the span are left out. */
};

/** What of a row is forgotten with a person, by the columns that have the name. NULL: nothing. */
struct weir_forgets {
    const char *key;           /**< Column of the table's key. */
    const char *renamed[3];    /**< In the table, and in snapshots: it becomes another. */
    const char *goes;          /**< In the table the row goes that has the name here. */
    const char *frozen_rename; /**< In snapshots alone. */
    const char *frozen_goes;   /**< In snapshots the row goes that has the name here. */
    const char *frozen_within; /**< In snapshots: JSON in which every member "person" is renamed. */
    const char *picture;       /**< In snapshots: digest of a picture, which goes with the name. */
};

/** What a subject calls a row of the table: "job/ID" is one by its `id`. noun NULL: nothing. */
struct weir_subject {
    const char *noun, *key;
};

/** What is known of a table. */
struct weir_noun {
    const char *table;
    /* Whose a row is: one of the next two; none: the platform's, and rights say who reads it. */
    const char *project;   /**< Column that names the project. */
    struct weir_row_of of; /**< It is of a row of another table. */
    struct weir_subject subject;
    const char *stays;                       /**< Why no rule is needed. NULL: it has rules. */
    const struct weir_retain_rule *rules[3]; /**< To the first NULL. */
    const struct weir_captured *captured;    /**< NULL: snapshots do not take it. */
    const struct weir_forgets *forgets;      /**< NULL: nothing. */
};

/* To write them with. */
// clang-format off
#define WEIR_OF(column, table, key) .of = {#column, #table, #key}
#define WEIR_SUBJECT(noun, key)     .subject = {#noun, #key}
#define WEIR_RULE(...)              &(const struct weir_retain_rule){__VA_ARGS__}
#define WEIR_CAPTURED(...)          &(const struct weir_captured){__VA_ARGS__}
#define WEIR_FORGETS(...)           &(const struct weir_forgets){__VA_ARGS__}
// clang-format on

#endif
