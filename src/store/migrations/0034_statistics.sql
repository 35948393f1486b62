-- What programs tell about themselves: numbers, curves, bars, tables, distributions.

CREATE TABLE statistics (
    seq           BIGINT NOT NULL PRIMARY KEY,
    id            TEXT   NOT NULL UNIQUE,
    ion           TEXT   NOT NULL REFERENCES ions (name),
    pipeline      TEXT,
    job           TEXT,
    name          TEXT   NOT NULL,
    kind          TEXT   NOT NULL,
    value         TEXT   NOT NULL,
    model_version BIGINT NOT NULL DEFAULT 0,
    actor         TEXT,
    time_ms       BIGINT NOT NULL
);
CREATE INDEX statistics_by_name ON statistics (ion, name, seq);
