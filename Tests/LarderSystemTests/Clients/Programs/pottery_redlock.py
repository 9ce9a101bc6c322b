"""pottery's Redlock with one master. Argument: the socket."""

import sys

import redis
from expecting import all_is_well, expect, expect_in, in_threads
from pottery import Redlock, ReleaseUnlockedLock, TooManyExtensions

path = sys.argv[1]
raw = redis.Redis(unix_socket_path=path)


def lock(key, **options):
    return Redlock(key=key, masters={redis.Redis(unix_socket_path=path)}, **options)


mine, other = lock("lock", auto_release_time=100), lock("lock", auto_release_time=100)
expect(mine.acquire(), True)
expect(other.acquire(blocking=False), False)
expect(other.acquire(timeout=0.1), False)
expect_in(raw.ttl("redlock:lock"), (99, 100))
expect((mine.locked() > 0, other.locked()), (True, 0))
raw.pexpire("redlock:lock", 50_000)
mine.extend()
expect_in(raw.ttl("redlock:lock"), (99, 100))
mine.extend()
mine.extend()
try:
    mine.extend()
except TooManyExtensions:
    pass
else:
    raise AssertionError("a fourth extension")
mine.release()
expect(raw.exists("redlock:lock"), 0)
# A client without the lock cannot release it.
expect(mine.acquire(), True)
raw.set("redlock:lock", "somebody else's")
expect(mine.locked(), 0)
try:
    mine.release()
except ReleaseUnlockedLock:
    pass
else:
    raise AssertionError("released what is somebody else's")
expect(raw.get("redlock:lock"), b"somebody else's")
state = {"sum": 0}


def work(_):
    for _ in range(3):
        with lock("many", auto_release_time=100):
            before = state["sum"]
            raw.ping()
            state["sum"] = before + 1


in_threads(4, work)
expect(state["sum"], 12)
raw.flushall()
all_is_well()
