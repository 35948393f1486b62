-- What the job that an allocation was asked for wants of its pods, as JSON: an image of a registry, volumes. NULL: nothing.
ALTER TABLE allocations ADD COLUMN pod TEXT;
