-- Events are kept by three rules (src/retain/rows.c has the same expression): what happens, what admins do, and
-- what anybody can have written by asking.

CREATE INDEX events_by_trail ON events
    (CASE WHEN topic <> 'audit' THEN 0
          WHEN kind IN ('token_used', 'login_link_made', 'session_begun', 'session_ended', 'login_refused',
                        'access_refused') THEN 2
          ELSE 1 END, seq);
