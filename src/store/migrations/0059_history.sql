-- What is asked again and again costs as much with a year behind it as on the first day.

-- Jobs that are not over: few, whatever has been.
CREATE INDEX jobs_open ON jobs (created_ms, id) WHERE state NOT IN ('SUCCEEDED', 'FAILED', 'CANCELLED');
-- Alerts that are not resolved, which each look and each page asks for.
CREATE INDEX alerts_open ON alerts (id) WHERE state <> 'resolved';
-- Lists are in order of time.
CREATE INDEX jobs_by_time ON jobs (created_ms, id);
CREATE INDEX jobs_by_kind ON jobs (kind, created_ms, id);
CREATE INDEX jobs_by_project ON jobs (project, created_ms, id);
CREATE INDEX runs_by_start ON runs (start_ms DESC, id);
CREATE INDEX alerts_by_time ON alerts (raised_ms, id);
CREATE INDEX alert_deliveries_by_time ON alert_deliveries (created_ms, id);
CREATE INDEX kpis_by_number ON kpis (ion, seq);
CREATE INDEX statistics_by_number ON statistics (ion, seq);
CREATE INDEX events_by_kind ON events (kind, seq);
-- The newest that succeeded, for how long runs take.
CREATE INDEX jobs_succeeded ON jobs (revision) WHERE state = 'SUCCEEDED';
-- What is to go.
CREATE INDEX jobs_over ON jobs (finished_ms, id) WHERE state IN ('SUCCEEDED', 'FAILED', 'CANCELLED');
CREATE INDEX runs_finished ON runs (finished_ms, id) WHERE finished_ms > 0;
CREATE INDEX alerts_resolved ON alerts (resolved_ms, id) WHERE state = 'resolved';
CREATE INDEX outbox_over ON outbox (done_ms, seq) WHERE state <> 'pending';
CREATE INDEX policy_decisions_by_time ON policy_decisions (time_ms, id);
-- The oldest decision whose picture lies in a pack.
CREATE INDEX decisions_in_packs ON decisions (seq) WHERE pack > 0;
-- What a version is used for, and called.
CREATE INDEX model_aliases_by_version ON model_aliases (model, version);
CREATE INDEX ion_candidates_by_model ON ion_candidates (model, version);
CREATE INDEX ion_candidates_by_state ON ion_candidates (ion, link, state);
CREATE INDEX ion_candidates_in_use ON ion_candidates (id, model_version) WHERE state IN ('PENDING_REVIEW', 'WAITING', 'APPROVED', 'SHADOW', 'CANARY', 'AB', 'SERVING');
-- What names a blob.
CREATE INDEX model_versions_by_blob ON model_versions (blob);
CREATE INDEX model_versions_by_golden ON model_versions (golden) WHERE golden IS NOT NULL;
CREATE INDEX dataset_versions_by_blob ON dataset_versions (blob) WHERE blob IS NOT NULL;

-- Jobs by project, kind and state, counted as they come, change and go.
CREATE TABLE job_totals (
    project    TEXT   NOT NULL,
    kind       TEXT   NOT NULL,
    state      TEXT   NOT NULL,
    n          BIGINT NOT NULL,
    n_restarts BIGINT NOT NULL,
    PRIMARY KEY (project, kind, state)
) WITHOUT ROWID;
INSERT INTO job_totals SELECT project, kind, state, count(*), sum(n_restarts) FROM jobs GROUP BY project, kind, state;

CREATE TRIGGER jobs_come AFTER INSERT ON jobs
BEGIN
    INSERT INTO job_totals VALUES (NEW.project, NEW.kind, NEW.state, 1, NEW.n_restarts)
    ON CONFLICT (project, kind, state) DO UPDATE SET n = n + 1, n_restarts = n_restarts + excluded.n_restarts;
END;
CREATE TRIGGER jobs_go AFTER DELETE ON jobs
BEGIN
    UPDATE job_totals SET n = n - 1, n_restarts = n_restarts - OLD.n_restarts
    WHERE project = OLD.project AND kind = OLD.kind AND state = OLD.state;
    DELETE FROM job_totals WHERE project = OLD.project AND kind = OLD.kind AND state = OLD.state AND n = 0;
END;
CREATE TRIGGER jobs_change AFTER UPDATE OF project, kind, state, n_restarts ON jobs
WHEN OLD.state <> NEW.state OR OLD.n_restarts <> NEW.n_restarts OR OLD.project <> NEW.project OR OLD.kind <> NEW.kind
BEGIN
    UPDATE job_totals SET n = n - 1, n_restarts = n_restarts - OLD.n_restarts
    WHERE project = OLD.project AND kind = OLD.kind AND state = OLD.state;
    INSERT INTO job_totals VALUES (NEW.project, NEW.kind, NEW.state, 1, NEW.n_restarts)
    ON CONFLICT (project, kind, state) DO UPDATE SET n = n + 1, n_restarts = n_restarts + excluded.n_restarts;
    DELETE FROM job_totals WHERE project = OLD.project AND kind = OLD.kind AND state = OLD.state AND n = 0;
END;
