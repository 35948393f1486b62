-- Who stands behind a task: not only whose job it is, but also the role of the token that it was sent with.
-- NULL: no token limited it, or it was sent before this was written down.

ALTER TABLE jobs ADD COLUMN limited_to TEXT;
ALTER TABLE sweeps ADD COLUMN limited_to TEXT;
ALTER TABLE ion_revisions ADD COLUMN limited_to TEXT;

-- Tokens that were made with a password end when it is changed. Which those were the audit says.
ALTER TABLE tokens ADD COLUMN origin TEXT;
UPDATE tokens SET origin = 'password' WHERE EXISTS (SELECT 1 FROM events WHERE topic = 'audit'
    AND kind = 'token_created' AND subject = 'token/' || tokens.id AND message LIKE '% was made with a password, by %');

-- Who names models labels them, too: aliases, stages, tags and descriptions are labels in both APIs.
UPDATE custom_roles SET rights = rights || ',label models'
    WHERE ',' || rights || ',' LIKE '%,name models,%' AND ',' || rights || ',' NOT LIKE '%,label models,%';

-- Agents show a task the folders of the state folder that the server names, and no others: tasks of
-- before get those of their project's datasets, and of what was looked up for them the demo's.
UPDATE tasks SET definition = json_set(definition, '$.folders', json((SELECT json_group_array(folder) FROM
    (SELECT DISTINCT 'datasets/' || d.name AS folder FROM json_each(tasks.definition, '$.paths') p
        JOIN datasets d ON d.path = json_extract(p.value, '$.path') AND d.is_uploaded = 1
        JOIN jobs j ON j.id = tasks.job AND j.project = d.project
     UNION SELECT 'demo' FROM json_each(tasks.definition, '$.paths') p JOIN jobs j ON j.id = tasks.job
        WHERE j.project = 'default' AND json_extract(p.value, '$.path') LIKE '%/demo/%'))))
    WHERE json_valid(definition) AND json_type(definition, '$.paths') = 'array';
