-- Parts of accelerators (Slurm's shards): into how many a pool's can be had, what of each an allocation was asked with, and what of each a
-- node has, in thousandths. 0: whole ones.
ALTER TABLE pools ADD COLUMN accelerator_parts BIGINT NOT NULL DEFAULT 0;
ALTER TABLE allocations ADD COLUMN accelerator_milli BIGINT NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN device_milli BIGINT NOT NULL DEFAULT 0;

-- CPUs of a pool's nodes that are in use over there, also by others; -1: nobody says.
ALTER TABLE pools ADD COLUMN cpus_busy BIGINT NOT NULL DEFAULT -1;
