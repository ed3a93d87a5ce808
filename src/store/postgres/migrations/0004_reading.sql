-- What the inbox is read by: filters, search and followers.
SELECT 1;
