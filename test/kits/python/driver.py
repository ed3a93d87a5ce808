"""The client in a process of its own, driven by a test: JSON lines in (calls, and answers of handlers), JSON lines out (results,
problems, events for handlers). Its clock stands still but for what the test advances it. Argument: the options, as JSON."""

import json
import queue
import sys
import threading

from intray import Intray, LeaseLost, Refused, Unavailable, Unrecoverable

options = json.loads(sys.argv[1])
clock = options.pop("now", None)
out = threading.Lock()
handled = {}
stops = {}


def say(**line):
    with out:
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


def shape(error):
    fields = {name: getattr(error, name) for name in ("status", "code", "retry_after", "needs_fix", "event_id", "fields") if hasattr(error, name)}
    return {"name": type(error).__name__, "message": str(error), "known": isinstance(error, (LeaseLost, Refused, Unavailable)), **fields}


def now():
    return clock


def watch_over(event, context):
    context.wait()
    say(over=event["id"])


def handle(event, context):
    answers = handled[event["id"]] = queue.Queue()
    threading.Thread(target=watch_over, args=(event, context), daemon=True).start()
    say(handle=event)
    failure = answers.get()
    if failure is not None:
        raise (Unrecoverable if failure.startswith("dead: ") else RuntimeError)(failure)


def call(name, args):
    global clock
    if name == "advance":
        clock += args["ms"]
        return None
    if name == "send":
        sent = intray.send(args["message"], traceparent=args.get("traceparent"))
        return {"source_ref": sent.source_ref, "receipt": sent.receipt}
    if name in ("flush", "close"):
        return getattr(intray, name)(**args)._asdict()
    if name == "refused":
        return [row._asdict() for row in intray.refused()]
    if name == "resend":
        return intray.resend(args["id"])
    stop = stops[args.pop("stop")] if "stop" in args else None
    if name == "work":
        return intray.work(handle, stop=stop, **args)
    if name == "follow":
        for event in intray.follow(stop=stop, **args):
            say(followed=event["id"])
        return None
    raise ValueError(name)


def run(id, name, args):
    try:
        say(id=id, result=call(name, args))
    except BaseException as error:
        say(id=id, error=shape(error))


on_problem = lambda error: say(problem=shape(error))  # noqa: E731
intray = Intray(**options, on_problem=on_problem, **({} if clock is None else {"now": now}))
for text in sys.stdin:
    line = json.loads(text)
    if "answer" in line:
        handled[line["answer"]].put(line["failure"])
    elif "stop" in line:
        stops[line["stop"]].set()
    else:
        args = line["args"]
        if "stop" in args:
            stops[args["stop"]] = threading.Event()
        threading.Thread(target=run, args=(line["id"], line["call"], args), daemon=True).start()
