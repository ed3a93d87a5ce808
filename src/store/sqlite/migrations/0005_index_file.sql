-- What is derived moves to a file of its own, made and filled by the indexer (index.sql): the writer of messages no longer
-- waits for it, nor it for the writer.

DROP TABLE event_index;
DROP TABLE event_words;
DROP TABLE conversations;
DROP TABLE repeats;
DROP TABLE index_cursors;
