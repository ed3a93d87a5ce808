-- What processors did: primary data that only processing writes.
SELECT 1;
