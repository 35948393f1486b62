-- How much an event matters; it follows from the kind (store/event.c).

ALTER TABLE events ADD COLUMN severity TEXT NOT NULL DEFAULT 'info'
    CHECK (severity IN ('info', 'warning', 'error'));
UPDATE events SET severity = 'error' WHERE kind IN ('training_failed', 'job_failed');
UPDATE events SET severity = 'warning' WHERE kind IN ('job_restarting', 'replica_restarting',
    'job_cancelled', 'prediction_ended', 'review_wanted', 'model_rejected', 'model_rolled_back');
