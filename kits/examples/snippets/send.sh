curl -sS https://inbox.example.org/v1/inbox/events \
  -H "Authorization: Bearer itr_…" -H 'Content-Type: application/json' \
  --data-raw '{
    "source_ref": "example:curl:1",
    "channel_ref": "ada@example.org",
    "contact": { "name": "Ada Lovelace", "email": "ada@example.org" },
    "message": { "type": "text", "text": "Do you ship to Malta?" }
  }'
