-- Two models on the same labelled pictures: what a job of kind `measure` found, and a bounded sample of the pictures on which
-- their answers differ.
CREATE TABLE comparisons (
    run               TEXT   NOT NULL PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
    model             TEXT   NOT NULL,
    version           BIGINT NOT NULL,
    live_model        TEXT   NOT NULL,
    live_version      BIGINT NOT NULL,
    dataset           TEXT   NOT NULL,
    dataset_version   BIGINT NOT NULL,
    n_samples         BIGINT NOT NULL,
    n_errors          BIGINT NOT NULL,
    accuracy          DOUBLE PRECISION,
    live_accuracy     DOUBLE PRECISION,
    p_value           DOUBLE PRECISION,
    better            BIGINT NOT NULL,
    n_live_right      BIGINT NOT NULL, -- on which the live model alone is right
    n_candidate_right BIGINT NOT NULL,
    n_both_wrong      BIGINT NOT NULL, -- and with different answers
    n_kept            BIGINT NOT NULL,
    confusions        TEXT,
    time_ms           BIGINT NOT NULL
);
CREATE INDEX comparisons_of_version ON comparisons (model, version, time_ms);

CREATE TABLE disagreements (
    id          TEXT   NOT NULL PRIMARY KEY, -- RUN/0007
    run         TEXT   NOT NULL REFERENCES comparisons (run) ON DELETE CASCADE,
    place       BIGINT NOT NULL,             -- of the run: 0 is shown first
    kind        TEXT   NOT NULL CHECK (kind IN ('live-right', 'candidate-right', 'both-wrong')),
    file        TEXT   NOT NULL,
    sha256      TEXT,
    label       TEXT   NOT NULL,
    answer      TEXT   NOT NULL,
    score       DOUBLE PRECISION,
    live_answer TEXT   NOT NULL,
    live_score  DOUBLE PRECISION
);
CREATE INDEX disagreements_of_run ON disagreements (run, place);
