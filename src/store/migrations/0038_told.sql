-- A receiver says itself whether it works: all who may use it see it, and nobody has to search messages.
ALTER TABLE alert_receivers ADD COLUMN is_failing   INTEGER NOT NULL DEFAULT 0;
ALTER TABLE alert_receivers ADD COLUMN last_sent_ms BIGINT  NOT NULL DEFAULT 0;
UPDATE alert_receivers SET
    is_failing = EXISTS (SELECT 1 FROM alerts WHERE key = 'receiver_failing:' || alert_receivers.name
                         AND state <> 'resolved'),
    last_sent_ms = coalesce((SELECT max(done_ms) FROM alert_deliveries
                             WHERE receiver = alert_receivers.name AND state = 'sent'), 0);

-- What programs told last of a title, also when it is over.
CREATE INDEX alerts_told ON alerts (key) WHERE kind = 'told';

-- A statistic's identifier is given by whoever tells it: it says something within the ION alone.
CREATE TABLE statistics_of_ion (
    seq           BIGINT NOT NULL PRIMARY KEY,
    id            TEXT   NOT NULL,
    ion           TEXT   NOT NULL REFERENCES ions (name),
    pipeline      TEXT,
    job           TEXT,
    name          TEXT   NOT NULL,
    kind          TEXT   NOT NULL,
    value         TEXT   NOT NULL,
    model_version BIGINT NOT NULL DEFAULT 0,
    actor         TEXT,
    time_ms       BIGINT NOT NULL,
    UNIQUE (ion, id)
);
INSERT INTO statistics_of_ion SELECT seq, id, ion, pipeline, job, name, kind, value, model_version, actor, time_ms
    FROM statistics;
DROP TABLE statistics;
ALTER TABLE statistics_of_ion RENAME TO statistics;
CREATE INDEX statistics_by_name ON statistics (ion, name, seq);
