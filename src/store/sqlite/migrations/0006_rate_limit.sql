-- A rate of its own for a token, as it is written: 100/1s, or off. NULL: as the setting has it.
ALTER TABLE tokens ADD COLUMN rate_limit TEXT;
