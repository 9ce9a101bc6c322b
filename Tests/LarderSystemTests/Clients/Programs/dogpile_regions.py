"""dogpile.cache over Redis. Argument: the socket."""

import sys
import time

import redis
from dogpile.cache import make_region
from dogpile.cache.api import NO_VALUE
from expecting import all_is_well, expect, expect_in, in_threads

path = sys.argv[1]
raw = redis.Redis(unix_socket_path=path)


def region(**options):
    return make_region(key_mangler=lambda key: "dogpile:" + key).configure(
        "dogpile.cache.redis", expiration_time=options.pop("expiration_time", 300),
        arguments={"url": f"unix://{path}?db=0", "redis_expiration_time": 600, **options})


books = region()
books.set("model", {"title": "一本书", "tags": ["x"]})
expect(books.get("model"), {"title": "一本书", "tags": ["x"]})
expect(books.get("nothing"), NO_VALUE)
expect_in(raw.ttl("dogpile:model"), (599, 600))
books.set_multi({"a": 1, "b": 2})
expect(books.get_multi(["a", "nothing", "b"]), [1, NO_VALUE, 2])
expect_in(raw.ttl("dogpile:b"), (599, 600))
books.delete("a")
books.delete_multi(["b", "nothing"])
expect(books.get_multi(["a", "b"]), [NO_VALUE, NO_VALUE])

# The result of a function is computed once.
calls = []


@books.cache_on_arguments(namespace="powers")
def power(base, exponent):
    calls.append((base, exponent))
    return base ** exponent


expect([power(2, 10), power(2, 10), power(3, 2)], [1024, 1024, 9])
expect(calls, [(2, 10), (3, 2)])
power.invalidate(2, 10)
expect(power(2, 10), 1024)
expect(len(calls), 3)
power.set(7, 2, 10)
expect((power(2, 10), power.refresh(2, 10)), (7, 1024))


@books.cache_multi_on_arguments()
def squares(*numbers):
    calls.append(numbers)
    return [number * number for number in numbers]


expect(squares(1, 2, 3), [1, 4, 9])
expect(squares(2, 3, 4), [4, 9, 16])
expect(calls[-2:], [(1, 2, 3), (4,)])

# Values become stale by dogpile's own clock, and are recomputed.
brief = region(expiration_time=1)
brief.set("stale", "old")
deadline = time.monotonic() + 60
while brief.get("stale") != NO_VALUE:
    expect(time.monotonic() < deadline, True)
expect(brief.get_or_create("stale", lambda: "new"), "new")

# Only one caller computes a value. The threads of a process use a lock of the process. Several processes use a lock in
# the server, which a script releases.
made = []


def create():
    made.append(1)
    return "made"


def work(_):
    expect(books.get_or_create("once", create), "made")


in_threads(8, work)
expect(made, [1])
made.clear()
shared = [
    region(distributed_lock=True, lock_timeout=100, lock_sleep=0.001, thread_local_lock=False) for _ in range(8)
]


def create_slowly():
    made.append(raw.ttl("_lockdogpile:shared"))
    return "made"


def work_shared(number):
    expect(shared[number].get_or_create("shared", create_slowly), "made")


in_threads(8, work_shared)
expect(len(made), 1)
expect_in(made[0], (99, 100))
expect(raw.keys("_lock*"), [])
mutex = shared[0].actual_backend.get_mutex("mutex")
expect((mutex.acquire(), shared[1].actual_backend.get_mutex("mutex").acquire(False)), (True, False))
mutex.release()
expect(raw.keys("_lock*"), [])
raw.flushall()
all_is_well()
