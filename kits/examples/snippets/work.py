# Needs the package intray (kits/python). Run as many as you like.
import signal
import threading

from intray import Intray

stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())


def handle(event, context):
    print(event["id"], event["payload"], flush=True)  # your work; raise if it fails


with Intray("https://inbox.example.org", "itr_…", outbox="none") as intray:
    intray.work(handle, concurrency=4, stop=stop)
