-- What doors were told, and what came of it: one row for each command, and for what was not sent though a decision lets somebody in.
CREATE TABLE door_orders (
    id             TEXT   NOT NULL PRIMARY KEY,
    seq            BIGINT NOT NULL UNIQUE,
    ion            TEXT   NOT NULL,
    pipeline       TEXT   NOT NULL,
    replica        TEXT   NOT NULL,
    door           TEXT   NOT NULL,
    verb           TEXT   NOT NULL,
    state          TEXT   NOT NULL,
    decision       TEXT,
    camera         TEXT,
    sent_ms        BIGINT NOT NULL,
    valid_until_ms BIGINT NOT NULL,
    answered_ms    BIGINT NOT NULL DEFAULT 0,
    detail         TEXT
);
CREATE INDEX door_orders_by_time_of_all ON door_orders (sent_ms);
CREATE INDEX door_orders_by_time ON door_orders (ion, sent_ms);
CREATE INDEX door_orders_by_door ON door_orders (ion, door, sent_ms);
CREATE INDEX door_orders_by_state ON door_orders (ion, state, sent_ms);
CREATE INDEX door_orders_by_decision ON door_orders (decision) WHERE decision IS NOT NULL;
