# Takes one event, and acknowledges it once your work is done. Needs jq.
url=https://inbox.example.org/v1/inbox/claims
token='Authorization: Bearer itr_…'
event=$(curl -sS "$url" -H "$token" -H 'Content-Type: application/json' \
  --data-raw '{"limit":1,"lease_s":60,"wait_s":20}' | jq -c '.events[0] // empty')
if [ -n "$event" ]; then
  printf '%s\n' "$event" # your work
  printf '%s\n' "$event" | jq -c '{id, lease_id}' |
    curl -sS "$url/ack" -H "$token" -H 'Content-Type: application/json' --data-binary @-
fi
