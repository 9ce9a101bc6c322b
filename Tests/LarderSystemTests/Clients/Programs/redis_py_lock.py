"""redis-py's lock(), which uses scripts for release, extend and reacquire. Arguments: the socket, the protocol version,
and `origin` for a database that does not accept scripts in transactions."""

import sys
import threading
import time

import redis
from expecting import all_is_well, expect, expect_error, expect_in, in_threads
from redis.exceptions import LockError, LockNotOwnedError

path, version = sys.argv[1], int(sys.argv[2])


def connect():
    return redis.Redis(unix_socket_path=path, protocol=version)


client, other = connect(), connect()

# The lock's entry in the server, and which client gets the lock.
lock = client.lock("lock", timeout=100)
expect(lock.acquire(), True)
expect(client.get("lock"), lock.local.token)
expect_in(client.ttl("lock"), (99, 100))
rival = other.lock("lock", timeout=100)
expect(rival.acquire(blocking=False), False)
started = time.monotonic()
expect(rival.acquire(blocking_timeout=0.2), False)
expect(time.monotonic() - started < 60, True)
expect((lock.locked(), lock.owned(), rival.locked(), rival.owned()), (True, True, True, False))
expect_error(LockError, "Cannot release a lock that's not owned or is already unlocked", rival.release)
expect_error(LockError, "Cannot extend an unlocked lock", rival.extend, 10)

# Extend the timeout, and reset it to its initial value.
expect(lock.extend(50), True)
expect_in(client.ttl("lock"), (148, 149, 150))
expect(lock.extend(30, replace_ttl=True), True)
expect_in(client.ttl("lock"), (29, 30))
expect(lock.reacquire(), True)
expect_in(client.ttl("lock"), (99, 100))
lock.release()
expect(client.exists("lock"), 0)
expect(rival.acquire(blocking=False), True)

# A client whose lock belongs to another client now can neither release nor extend it, and gets an error.
expect(rival.reacquire(), True)
other.set("lock", "somebody else's", px=100_000)
expect_error(LockNotOwnedError, "Cannot extend a lock that's no longer owned", rival.extend, 10)
expect_error(LockNotOwnedError, "Cannot reacquire a lock that's no longer owned", rival.reacquire)
expect_error(LockNotOwnedError, "Cannot release a lock that's no longer owned", rival.release)
expect(client.get("lock"), b"somebody else's")
expect_in(client.ttl("lock"), (99, 100))
client.delete("lock")

# An expired lock is free again, also for a client that is waiting for it.
brief = client.lock("brief", timeout=0.05)
expect(brief.acquire(), True)
heir = other.lock("brief", timeout=100, sleep=0.005)
expect(heir.acquire(blocking_timeout=60), True)
expect_error(LockNotOwnedError, "Cannot release a lock that's no longer owned", brief.release)
expect(other.get("brief"), heir.local.token)
heir.release()

# A lock without a timeout stays until its holder releases it, from any thread if thread_local is false.
ever = client.lock("ever", thread_local=False)
expect(ever.acquire(), True)
expect(client.ttl("ever"), -1)
expect_error(LockError, "Cannot extend a lock with no timeout", ever.extend, 10)
releaser = threading.Thread(target=ever.release)
releaser.start()
releaser.join()
expect(client.exists("ever"), 0)

# A lock in a `with` block. Scripts that the server no longer has are sent again.
client.script_flush()
with client.lock("block", timeout=100) as block:
    expect(client.exists("block"), 1)
    client.script_flush()
    expect(block.extend(10), True)
    client.script_flush()
expect(client.exists("block"), 0)

# Several clients contend for the lock, which alone protects the state.
state = {"holders": 0, "sum": 0}


def work(_):
    mine = connect()
    for _ in range(10):
        with mine.lock("many", timeout=100, sleep=0.001):
            state["holders"] += 1
            expect(state["holders"], 1)
            before = state["sum"]
            time.sleep(0)
            state["sum"] = before + 1
            state["holders"] -= 1
    mine.close()


in_threads(8, work)
expect(state["sum"], 80)

# The same script alone, and several times in a pipeline.
compare = client.register_script("if redis.call('get', KEYS[1]) == ARGV[1] then return 'yes' end return false")
client.set("compared", "x")
expect(compare(keys=["compared"], args=["x"]), b"yes")
if sys.argv[3:] != ["origin"]:
    with client.pipeline() as pipe:
        compare(keys=["compared"], args=["x"], client=pipe)
        compare(keys=["compared"], args=["y"], client=pipe)
        expect(pipe.execute(), [b"yes", None])
client.flushall()
all_is_well()
