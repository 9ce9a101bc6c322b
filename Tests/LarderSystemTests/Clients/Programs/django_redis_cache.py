"""django-redis: its cache, its counters (a script), and its lock. Argument: the socket."""

import sys

import django
from django.conf import settings
from expecting import all_is_well, expect, expect_error, expect_in, in_threads

path = sys.argv[1]
settings.configure(
    CACHES={
        "default": {
            "BACKEND": "django_redis.cache.RedisCache",
            "LOCATION": f"unix://{path}?db=0",
            "KEY_PREFIX": "site",
            "TIMEOUT": 300,
        }
    },
    USE_TZ=True,
)
django.setup()

from django.core.cache import cache  # noqa: E402: Django wants its settings first
from django_redis import get_redis_connection  # noqa: E402
from redis.exceptions import LockNotOwnedError  # noqa: E402

raw = get_redis_connection("default")

# The cache.
model = {"title": "一本书", "pages": 321, "tags": ("x", "y"), "none": None}
cache.set("model", model)
expect(cache.get("model"), model)
expect_in(cache.ttl("model"), (299, 300))
expect(cache.set("model", "other", nx=True), False)
expect((cache.add("model", 1), cache.add("fresh", 1)), (False, True))
cache.set_many({"a": 1, "b": [2]}, timeout=60)
expect(cache.get_many(["a", "nothing", "b"]), {"a": 1, "b": [2]})
expect(cache.touch("a", 5000), True)
expect_in(cache.ttl("a"), (4999, 5000))
expect((cache.persist("a"), cache.ttl("a")), (True, None))
expect((cache.expire("a", 1000), cache.pexpire("a", 500_000)), (True, True))
expect_in(cache.ttl("a"), (499, 500))
expect(sorted(cache.keys("*")), ["a", "b", "fresh", "model"])
expect(sorted(cache.iter_keys("?")), ["a", "b"])
expect(cache.delete_pattern("?"), 2)
expect(cache.get_or_set("made", lambda: "computed"), "computed")
expect(cache.incr_version("made"), 2)
expect((cache.get("made"), cache.get("made", version=2)), (None, "computed"))

# Counters use a script, so that an expired counter is not stored again without an expiry. The fallback without a script
# loses concurrent updates.
cache.set("count", 0, timeout=300)
expect((cache.incr("count"), cache.incr("count", 41), cache.decr("count", 42)), (1, 42, 0))
expect_error(ValueError, "Key", cache.incr, "nothing")
expect(cache.has_key("nothing"), False)
expect(cache.incr("nothing", 7, ignore_key_check=True), 7)


def work(_):
    for _ in range(50):
        cache.incr("count")


in_threads(8, work)
expect(cache.get("count"), 400)
expect_in(cache.ttl("count"), (298, 299, 300))
# The server refuses numbers of more than 64 bits; the client then stores the result itself.
cache.set("great", 9223372036854775807)
expect(cache.incr("great"), 9223372036854775808)

# The lock.
lock = cache.lock("lock", timeout=100)
expect(lock.acquire(), True)
expect_in(raw.ttl("site:1:lock"), (99, 100))
expect(cache.lock("lock", timeout=100).acquire(blocking=False), False)
expect(cache.lock("lock", timeout=100).acquire(blocking_timeout=0.1), False)
expect(lock.extend(50), True)
expect_in(raw.ttl("site:1:lock"), (148, 149, 150))
lock.release()
expect(raw.exists("site:1:lock"), 0)
expect(lock.acquire(), True)
raw.set("site:1:lock", "somebody else's")
expect_error(LockNotOwnedError, "Cannot release", lock.release)
raw.delete("site:1:lock")
seen = {"sum": 0}


def guarded(_):
    for _ in range(10):
        with cache.lock("many", timeout=100, sleep=0.001):
            before = seen["sum"]
            cache.get("count")
            seen["sum"] = before + 1


in_threads(4, guarded)
expect(seen["sum"], 40)
cache.clear()
expect(raw.dbsize(), 0)
all_is_well()
