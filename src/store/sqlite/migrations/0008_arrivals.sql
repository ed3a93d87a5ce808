-- Messages that were taken in and are not filed yet: a batch in one row, as it crossed to the writer (append-batch.ts).
-- A commit then touches a page or two, where a row in events and one in dedupe for each message touch many. Filing moves them
-- there, in id order, in one transaction with the delete (filing.ts).
CREATE TABLE arrivals (
  first_id INTEGER PRIMARY KEY,
  last_id  INTEGER NOT NULL,
  batch    BLOB    NOT NULL
) STRICT;
