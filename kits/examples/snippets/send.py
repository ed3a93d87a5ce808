# Needs the package intray (kits/python).
from intray import Intray

intray = Intray(
    "https://inbox.example.org",
    "itr_…",
    outbox="outbox.db",  # messages wait here until the service has them
)

intray.send({
    "source_ref": "example:python:1",  # your own id of the message, so that a re-send is stored once
    "channel_ref": "ada@example.org",  # one per person or thread
    "contact": {"name": "Ada Lovelace", "email": "ada@example.org"},
    "message": {"type": "text", "text": "Do you ship to Malta?"},
})

intray.close()  # when the program ends
