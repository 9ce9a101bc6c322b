"""Celery's results in Redis. Argument: the socket.

The broker is in memory, because queues need lists. A worker runs in a thread. A client that waits for a result
subscribes to the channel on which it is published.
"""

import sys
import threading

import redis
from celery import Celery, group
from celery.contrib.testing.worker import start_worker
from celery.exceptions import TimeoutError as ResultTimeout
from expecting import all_is_well, expect, expect_in

path = sys.argv[1]
raw = redis.Redis(unix_socket_path=path)
app = Celery("tests", broker="memory://", backend=f"redis+socket://{path}?virtual_host=0")
app.conf.update(
    result_expires=1000, task_track_started=True, result_extended=True, worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=False)
may_end = threading.Event()


@app.task
def add(left, right):
    return left + right


@app.task
def fail(text):
    raise ValueError(text)


@app.task
def wait():
    may_end.wait(60)
    return {"title": "一本书", "tags": ["x"]}


# Write and read results without a worker.
backend = app.backend
backend.store_result("by hand", {"a": [1, None]}, "SUCCESS")
expect(app.AsyncResult("by hand").get(timeout=60), {"a": [1, None]})
expect_in(raw.ttl("celery-task-meta-by hand"), (999, 1000))
expect(app.AsyncResult("nobody").state, "PENDING")
expect(app.AsyncResult("by hand").forget(), None)
expect(raw.exists("celery-task-meta-by hand"), 0)

with start_worker(app, pool="threads", concurrency=2, perform_ping_check=False, shutdown_timeout=60):
    expect(add.delay(2, 40).get(timeout=60), 42)
    results = [add.delay(number, 1) for number in range(50)]
    expect([result.get(timeout=60) for result in results], list(range(1, 51)))
    failed = fail.delay("no luck")
    expect(repr(failed.get(timeout=60, propagate=False)), "ValueError('no luck')")
    expect((failed.state, failed.successful()), ("FAILURE", False))
    expect("ValueError: no luck" in failed.traceback, True)
    waiting = wait.delay()
    try:
        raise AssertionError(f"found {waiting.get(timeout=0.1)!r}, wanted to wait")
    except ResultTimeout:
        pass
    expect_in(waiting.state, ("PENDING", "STARTED"))
    may_end.set()
    expect(waiting.get(timeout=60), {"title": "一本书", "tags": ["x"]})
    expect(waiting.state, "SUCCESS")
    many = group(add.s(number, number) for number in range(20)).apply_async()
    expect(many.get(timeout=60), [2 * number for number in range(20)])
    # Instead of a chord, which needs sets, the client that waits for the group starts the next task.
    expect(add.delay(sum(many.get(timeout=60)), 1).get(timeout=60), 381)
    many.save()
    expect(app.GroupResult.restore(many.id).get(timeout=60), [2 * number for number in range(20)])
    many.delete()
    expect(app.GroupResult.restore(many.id), None)

expect(raw.dbsize() > 50, True)
raw.flushall()
all_is_well()
