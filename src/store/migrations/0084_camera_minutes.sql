-- What was decided about a camera's frames lately, by minute: how much it decides is known without counting decisions.
-- A camera has a row for each of 32 minutes, which are written over in turn, so the table grows with cameras alone.
-- Kept by the trigger, whoever adds; a decision that comes late counts for its minute while that has its row. A row that is a day
-- ahead is of a clock that was wrong: it gives way.
CREATE TABLE camera_minutes (
    ion       TEXT   NOT NULL,
    pipeline  TEXT   NOT NULL,
    camera    TEXT   NOT NULL,
    slot      BIGINT NOT NULL, -- the minute's remainder by 32
    minute    BIGINT NOT NULL, -- by the decision's own time, from 1970 on
    n_decided BIGINT NOT NULL,
    n_unknown BIGINT NOT NULL,
    last_ms   BIGINT NOT NULL,
    PRIMARY KEY (ion, pipeline, camera, slot)
) WITHOUT ROWID;
INSERT INTO camera_minutes
    SELECT ion, pipeline, camera, time_ms / 60000 % 32, time_ms / 60000, count(*),
        sum(CASE WHEN verdict = 'unknown' THEN 1 ELSE 0 END), max(time_ms)
    FROM decisions WHERE time_ms > (SELECT max(time_ms) - 1800000 FROM decisions)
    GROUP BY ion, pipeline, camera, time_ms / 60000;

CREATE TRIGGER camera_minutes_come AFTER INSERT ON decisions
BEGIN
    INSERT INTO camera_minutes VALUES (NEW.ion, NEW.pipeline, NEW.camera, NEW.time_ms / 60000 % 32, NEW.time_ms / 60000,
        1, CASE WHEN NEW.verdict = 'unknown' THEN 1 ELSE 0 END, NEW.time_ms)
    ON CONFLICT (ion, pipeline, camera, slot) DO UPDATE SET
        n_decided = excluded.n_decided + CASE WHEN minute = excluded.minute THEN n_decided ELSE 0 END,
        n_unknown = excluded.n_unknown + CASE WHEN minute = excluded.minute THEN n_unknown ELSE 0 END,
        last_ms = CASE WHEN minute = excluded.minute THEN max(last_ms, excluded.last_ms) ELSE excluded.last_ms END,
        minute = excluded.minute
    WHERE excluded.minute >= minute OR excluded.minute < minute - 1440;
END;
