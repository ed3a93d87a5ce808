-- The dedupe keys of what was filed last, as they came: the keys of a slice in one row (unsorted-keys.ts). They are put into dedupe
-- in large groups, in its order, so that neighbours share a page.
CREATE TABLE unsorted_keys (
  first_id INTEGER PRIMARY KEY,
  keys     BLOB    NOT NULL
) STRICT;
