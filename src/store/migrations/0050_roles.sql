-- Roles that admins define, beside those of Weir itself. `rights` is "VERB NOUN,VERB NOUN", as the matrix has them
-- (store/rights.def); who has such a role stands where roles of Weir itself do: project_members.role, tokens.role.
CREATE TABLE custom_roles (
    name        TEXT   NOT NULL PRIMARY KEY,
    description TEXT,
    rights      TEXT   NOT NULL,
    created_by  TEXT   NOT NULL,
    created_ms  BIGINT NOT NULL,
    changed_by  TEXT   NOT NULL,
    changed_ms  BIGINT NOT NULL
);
