"""redis-py's client-side cache, which CLIENT TRACKING keeps coherent. Requires RESP3. Argument: the socket."""

import sys
import time

import redis
from redis.cache import CacheConfig
from redis.connection import CacheProxyConnection
from expecting import all_is_well, expect, in_threads

path = sys.argv[1]
other = redis.Redis(unix_socket_path=path, protocol=3)

# redis-py requires Redis 7.4, although it only uses older features. Larder reports 7.0, whose replies it returns.
CacheProxyConnection.MIN_ALLOWED_VERSION = "7.0.0"


class Connection(redis.UnixDomainSocketConnection):
    """redis-py's cache reads these attributes, which only TCP connections have."""

    host, port = "", 0


def caching_pool():
    """Creates a pool with a cache: redis.Redis itself passes a cache only to TCP connections."""
    return redis.ConnectionPool(
        connection_class=Connection, path=path, protocol=3, cache_config=CacheConfig(max_size=1000))


near = redis.Redis(connection_pool=caching_pool())


def reads(connection):
    """Returns the number of GETs that the server has run."""
    return other.info("commandstats").get("cmdstat_get", {}).get("calls", 0)


def until(wanted, key):
    """Reads until the change is visible, that is, until its invalidation has arrived."""
    deadline = time.monotonic() + 60
    while (found := near.get(key)) != wanted:
        if time.monotonic() > deadline:
            raise AssertionError(f"{key}: found {found!r}, wanted {wanted!r}")


other.set("k", "1")
expect(near.get("k"), b"1")
before = reads(other)
for _ in range(100):
    expect(near.get("k"), b"1")
expect(reads(other) - before, 0)
expect(near.get_cache().size > 0, True)

# All kinds of changes by other clients.
other.set("k", "2")
until(b"2", "k")
other.append("k", "3")
until(b"23", "k")
other.delete("k")
until(None, "k")
other.mset({"k": "4", "l": "5"})
until(b"4", "k")
expect(near.mget("k", "l"), [b"4", b"5"])
with other.pipeline(transaction=True) as pipe:
    pipe.set("k", "6").set("l", "7")
    pipe.execute()
until(b"6", "k")
until(b"7", "l")
other.rename("l", "k")
until(b"7", "k")
until(None, "l")
other.set("k", "8", px=50)
until(None, "k")
other.set("k", "9")
until(b"9", "k")
other.flushdb()
until(None, "k")

# The client's own writes are visible at once.
for step in range(100):
    near.set("mine", step)
    expect(near.get("mine"), str(step).encode())


# A writer increments a counter; readers never see it decrease.
def work(number):
    if number == 0:
        writer = redis.Redis(unix_socket_path=path, protocol=3)
        for step in range(500):
            writer.set("counter", step)
        writer.close()
        return
    reader = redis.Redis(connection_pool=caching_pool())
    last, deadline = 0, time.monotonic() + 60
    while last < 499 and time.monotonic() < deadline:
        found = int(reader.get("counter") or 0)
        expect(found >= last, True)
        last = found
    expect(last, 499)
    reader.close()


in_threads(3, work)
near.close()
other.flushall()
all_is_well()
