-- Who is told of an alert, and what is done about it. `looked` 0: the rules have not seen the alert as it
-- is now; who changes an alert sets it in the same transaction, so that no change is missed.

ALTER TABLE alerts ADD COLUMN looked            INTEGER NOT NULL DEFAULT 0;
ALTER TABLE alerts ADD COLUMN acknowledged_note TEXT;
ALTER TABLE alerts ADD COLUMN silence           TEXT;
ALTER TABLE alerts ADD COLUMN silenced_ms       BIGINT NOT NULL DEFAULT 0;
ALTER TABLE alerts ADD COLUMN resolved_by       TEXT;
ALTER TABLE alerts ADD COLUMN is_sandbox        INTEGER NOT NULL DEFAULT 0;
UPDATE alerts SET looked = 1 WHERE state = 'resolved';
CREATE INDEX alerts_not_looked ON alerts (raised_ms) WHERE looked = 0;
CREATE INDEX alerts_silenced ON alerts (silenced_ms) WHERE silenced_ms > 0;

-- Where messages go. Of the platform: what the server may call is for its admins to say.
CREATE TABLE alert_receivers (
    name       TEXT   NOT NULL PRIMARY KEY,
    kind       TEXT   NOT NULL,
    doc        TEXT,
    options    TEXT   NOT NULL,
    projects   TEXT,
    created_by TEXT   NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL
);

CREATE TABLE alert_rules (
    name               TEXT    NOT NULL PRIMARY KEY,
    project            TEXT    REFERENCES projects (name),
    doc                TEXT,
    kinds              TEXT,
    subjects           TEXT,
    severities         TEXT,
    hold_ms            BIGINT  NOT NULL,
    group_by           TEXT    NOT NULL CHECK (group_by IN ('none', 'subject', 'rule')),
    group_ms           BIGINT  NOT NULL,
    receivers          TEXT    NOT NULL,
    tells_end          INTEGER NOT NULL,
    escalate_ms        BIGINT  NOT NULL,
    escalate_to        TEXT,
    actions            TEXT,
    action_interval_ms BIGINT  NOT NULL,
    is_disabled        INTEGER NOT NULL,
    created_by         TEXT    NOT NULL,
    created_ms         BIGINT  NOT NULL,
    updated_ms         BIGINT  NOT NULL
);

CREATE TABLE alert_silences (
    id         TEXT   NOT NULL PRIMARY KEY,
    project    TEXT   REFERENCES projects (name),
    alert      TEXT,
    kinds      TEXT,
    subjects   TEXT,
    severities TEXT,
    until_ms   BIGINT NOT NULL,
    note       TEXT,
    created_by TEXT   NOT NULL,
    created_ms BIGINT NOT NULL,
    ended_by   TEXT,
    ended_ms   BIGINT NOT NULL
);
CREATE INDEX alert_silences_by_end ON alert_silences (until_ms);

-- What a rule makes of one alert. The project is the rule's.
CREATE TABLE alert_firings (
    id           TEXT   NOT NULL PRIMARY KEY,
    rule         TEXT   NOT NULL,
    alert        TEXT   NOT NULL,
    project      TEXT,
    subject      TEXT,
    state        TEXT   NOT NULL CHECK (state IN ('waiting', 'told', 'escalated', 'over')),
    due_ms       BIGINT NOT NULL,
    raised_ms    BIGINT NOT NULL,
    told_ms      BIGINT NOT NULL,
    escalated_ms BIGINT NOT NULL,
    resend_ms    BIGINT NOT NULL,
    over_ms      BIGINT NOT NULL,
    acted_ms     BIGINT NOT NULL,
    actions      TEXT
);
CREATE INDEX alert_firings_by_alert ON alert_firings (alert);
CREATE INDEX alert_firings_by_rule ON alert_firings (rule, subject);
CREATE INDEX alert_firings_due ON alert_firings (due_ms) WHERE due_ms > 0;

-- Messages on their way to receivers: written with the firing that they tell of, sent by the server's
-- sender, the same identifier with each try.
CREATE TABLE alert_deliveries (
    id         TEXT   NOT NULL PRIMARY KEY,
    seq        BIGINT NOT NULL UNIQUE,
    receiver   TEXT   NOT NULL,
    rule       TEXT,
    project    TEXT,
    alert      TEXT,
    event      TEXT   NOT NULL CHECK (event IN ('raised', 'escalated', 'repeated', 'resolved', 'test')),
    message    TEXT   NOT NULL,
    state      TEXT   NOT NULL CHECK (state IN ('pending', 'sent', 'dead')),
    attempts   BIGINT NOT NULL,
    due_ms     BIGINT NOT NULL,
    error      TEXT,
    created_ms BIGINT NOT NULL,
    done_ms    BIGINT NOT NULL
);
CREATE INDEX alert_deliveries_pending ON alert_deliveries (receiver, alert, seq) WHERE state = 'pending';
CREATE INDEX alert_deliveries_done ON alert_deliveries (done_ms) WHERE state <> 'pending';
CREATE INDEX alert_deliveries_by_alert ON alert_deliveries (alert);
