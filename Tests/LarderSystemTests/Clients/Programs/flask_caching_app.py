"""Flask-Caching over Redis. Argument: the socket."""

import sys
import time

import redis
from expecting import all_is_well, expect, expect_in
from flask import Flask
from flask_caching import Cache

path = sys.argv[1]
app = Flask(__name__)
cache = Cache(app, config={
    "CACHE_TYPE": "RedisCache", "CACHE_REDIS_URL": f"unix://{path}?db=0", "CACHE_KEY_PREFIX": "flask:",
    "CACHE_DEFAULT_TIMEOUT": 300,
})
raw = redis.Redis(unix_socket_path=path)
calls = []


@app.route("/page/<name>")
@cache.cached(timeout=60)
def page(name):
    calls.append(name)
    return f"{name} {len(calls)}"


@app.route("/query")
@cache.cached(query_string=True)
def query():
    calls.append("query")
    return str(len(calls))


@cache.memoize(100)
def power(base, exponent):
    calls.append((base, exponent))
    return base ** exponent


with app.app_context():
    # Values.
    expect(cache.set("model", {"title": "一本书", "tags": ["x"]}), True)
    expect(cache.get("model"), {"title": "一本书", "tags": ["x"]})
    expect_in(raw.ttl("flask:model"), (299, 300))
    expect(cache.get("nothing"), None)
    expect(cache.add("model", 1), False)
    expect(cache.add("new", 1, timeout=10), True)
    expect(cache.has("new"), True)
    expect(cache.delete("new"), True)
    expect(cache.has("new"), False)
    expect(sorted(cache.set_many({"a": 1, "b": 2})), ["a", "b"])
    expect(cache.get_many("a", "nothing", "b"), [1, None, 2])
    expect(cache.get_dict("a", "b"), {"a": 1, "b": 2})
    cache.delete_many("a", "b")
    expect(cache.get_many("a", "b"), [None, None])
    expect(cache.set("forever", 1, timeout=0), True)
    expect(raw.ttl("flask:forever"), -1)
    expect(cache.cache.inc("counter"), 1)
    expect(cache.cache.inc("counter", 41), 42)
    expect(cache.cache.dec("counter", 2), 40)

    # Results of functions.
    expect([power(2, 10) for _ in range(3)], [1024] * 3)
    expect(power(3, 2), 9)
    expect(calls, [(2, 10), (3, 2)])
    cache.delete_memoized(power, 2, 10)
    expect((power(2, 10), power(3, 2)), (1024, 9))
    expect(calls, [(2, 10), (3, 2), (2, 10)])
    cache.delete_memoized(power)
    expect((power(2, 10), power(3, 2)), (1024, 9))
    expect(len(calls), 5)

# Pages.
client = app.test_client()
expect([client.get("/page/x").text for _ in range(3)], ["x 6"] * 3)
expect(client.get("/page/y").text, "y 7")
expect([client.get("/query?a=1&b=2").text, client.get("/query?b=2&a=1").text], ["8", "8"])
expect(client.get("/query?a=2").text, "9")
expect_in(raw.ttl("flask:view//page/x"), (59, 60))

with app.app_context():
    cache.set("soon", "x", timeout=1)
    deadline = time.monotonic() + 60
    while cache.get("soon") is not None:
        expect(time.monotonic() < deadline, True)
    # clear() removes only keys with the prefix.
    raw.set("somebody else's", 1)
    cache.clear()
    expect(cache.get("model"), None)
expect(client.get("/page/x").text, "x 10")
expect(raw.get("somebody else's"), b"1")
raw.flushall()
all_is_well()
