-- How many decisions of a day knew nobody: what (unknown) come to a door, also after retention. Kept by the
-- trigger, whoever adds.
CREATE TABLE unknown_days (
    ion      TEXT   NOT NULL,
    pipeline TEXT   NOT NULL,
    day      BIGINT NOT NULL, -- by the decision's own time, UTC, from 1970 on
    n        BIGINT NOT NULL,
    PRIMARY KEY (ion, pipeline, day)
) WITHOUT ROWID;
INSERT INTO unknown_days
    SELECT ion, pipeline, time_ms / 86400000, count(*) FROM decisions
    WHERE verdict = 'unknown' AND is_sandbox = 0 GROUP BY ion, pipeline, time_ms / 86400000;

CREATE TRIGGER unknown_come AFTER INSERT ON decisions
WHEN NEW.verdict = 'unknown' AND NEW.is_sandbox = 0
BEGIN
    INSERT INTO unknown_days VALUES (NEW.ion, NEW.pipeline, NEW.time_ms / 86400000, 1)
    ON CONFLICT (ion, pipeline, day) DO UPDATE SET n = n + 1;
END;
