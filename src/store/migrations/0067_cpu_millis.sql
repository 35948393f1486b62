-- CPUs are counted in thousandths of one. What a task takes stays there in whole ones too, rounded up, for those who
-- read only that.
ALTER TABLE tasks ADD COLUMN cpu_millis BIGINT NOT NULL DEFAULT 0;
UPDATE tasks SET cpu_millis = cpu_slots * 1000;

ALTER TABLE deployments ADD COLUMN cpu_millis BIGINT NOT NULL DEFAULT 1000;
UPDATE deployments SET cpu_millis = cpus * 1000;
ALTER TABLE deployments DROP COLUMN cpus;
