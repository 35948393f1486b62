-- What jobs ask for beside CPUs and memory, and which devices their tasks have.

ALTER TABLE jobs ADD COLUMN priority BIGINT NOT NULL DEFAULT 50;
ALTER TABLE jobs ADD COLUMN is_preemptible INTEGER NOT NULL DEFAULT 1;
ALTER TABLE jobs ADD COLUMN time_limit_ms BIGINT NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN min_tasks BIGINT NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN placement TEXT;
UPDATE jobs SET priority = 125 WHERE is_service = 1;

ALTER TABLE tasks ADD COLUMN n_accelerators BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN accelerator_model TEXT;
ALTER TABLE tasks ADD COLUMN accelerator_milli BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN accelerator_memory_bytes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN mig_profile TEXT;
ALTER TABLE tasks ADD COLUMN devices TEXT;

-- What is given, until the node's agent says that the attempt's processes have ended. A row whose
-- attempt the server no longer counts on (its node was lost) is left: nothing is placed there.
CREATE TABLE task_devices (
    task         TEXT    NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    attempt      BIGINT  NOT NULL,
    node         TEXT    NOT NULL REFERENCES nodes (name) ON DELETE CASCADE,
    idx          BIGINT  NOT NULL,
    milli        BIGINT  NOT NULL,
    memory_bytes BIGINT  NOT NULL,
    is_left      INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (task, attempt, node, idx)
);
CREATE INDEX task_devices_by_device ON task_devices (node, idx);
CREATE INDEX task_devices_left ON task_devices (node) WHERE is_left = 1;

-- What placement knows of a node's devices, so that it need not read all of them.
ALTER TABLE nodes ADD COLUMN accelerators TEXT;
ALTER TABLE devices ADD COLUMN used_milli BIGINT NOT NULL DEFAULT 0;
ALTER TABLE devices ADD COLUMN holders TEXT;
