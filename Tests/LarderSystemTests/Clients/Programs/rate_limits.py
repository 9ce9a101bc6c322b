"""Rate limits: `limits`, and libraries that use it (Flask-Limiter, slowapi). Argument: the socket."""

import sys
import time

import redis
from expecting import all_is_well, expect, expect_in, in_threads
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient
from flask import Flask
from flask_limiter import Limiter as FlaskLimiter
from limits import RateLimitItemPerSecond, parse, storage, strategies
from slowapi import Limiter as SlowLimiter, _rate_limit_exceeded_handler
from slowapi.errors import RateLimitExceeded

path = sys.argv[1]
uri = f"redis+unix://{path}"
raw = redis.Redis(unix_socket_path=path)
backend = storage.storage_from_string(uri)
expect(backend.check(), True)

# A fixed window: INCRBY, and EXPIRE after the first hit.
fixed = strategies.FixedWindowRateLimiter(backend)
hundred = parse("100 per hour")
expect(fixed.test(hundred, "ann"), True)
expect([fixed.hit(hundred, "ann") for _ in range(3)], [True] * 3)
expect(fixed.hit(hundred, "ann", cost=98), False)
expect(fixed.get_window_stats(hundred, "bob").remaining, 100)
expect_in(raw.ttl(backend.prefixed_key(hundred.key_for("ann"))), (3598, 3599, 3600))
passed = []


def hits(_):
    for _ in range(40):
        if fixed.hit(hundred, "many"):
            passed.append(1)


in_threads(8, hits)
expect(len(passed), 100)
fixed.clear(hundred, "many")
expect(fixed.get_window_stats(hundred, "many").remaining, 100)

# A sliding window with two counters: PTTL, RENAME, SET PX, INCRBY.
sliding = strategies.SlidingWindowCounterRateLimiter(backend)
passed.clear()


def slides(_):
    for _ in range(40):
        if sliding.hit(hundred, "sliding"):
            passed.append(1)


in_threads(8, slides)
expect(len(passed), 100)
expect(sliding.test(hundred, "sliding"), False)
expect(sliding.get_window_stats(hundred, "sliding").remaining, 0)
# The current window becomes the previous one, and then counts in proportion to its overlap.
brief = RateLimitItemPerSecond(4, 1)
expect([sliding.hit(brief, "brief") for _ in range(4)], [True] * 4)
deadline = time.monotonic() + 60
while not sliding.hit(brief, "brief"):
    expect(time.monotonic() < deadline, True)
    time.sleep(0.01)
sliding.clear(hundred, "sliding")
expect(sliding.test(hundred, "sliding"), True)

# A moving window needs a list, which Larder does not support: it fails, and reports the reason.
moving = strategies.MovingWindowRateLimiter(backend)
if raw.info("server").get("executable", "").endswith("redis-server"):
    expect([moving.hit(parse("2 per hour"), "ann") for _ in range(3)], [True, True, False])
else:
    try:
        found = moving.hit(parse("2 per hour"), "ann")
    except redis.ResponseError as error:
        expect("there are no lists: Larder stores strings only" in str(error), True)
    else:
        raise AssertionError(f"a moving window: found {found!r}, wanted an error")
raw.flushall()

# Requests to applications with Flask-Limiter and slowapi.
for strategy in ("fixed-window", "sliding-window-counter"):
    flask = Flask(__name__)
    limiter = FlaskLimiter(lambda: "ann", app=flask, storage_uri=uri, strategy=strategy, headers_enabled=True)

    @flask.get("/page")
    @limiter.limit("3 per hour")
    def flask_page():
        return "page"

    ann = flask.test_client()
    expect([ann.get("/page").status_code for _ in range(5)], [200, 200, 200, 429, 429])
    expect(ann.get("/page").headers["X-RateLimit-Remaining"], "0")
    limiter.reset()
    expect(raw.dbsize(), 0)
    expect(ann.get("/page").status_code, 200)
    raw.flushall()

api = FastAPI()
slow = SlowLimiter(key_func=lambda: "ann", storage_uri=uri)
api.state.limiter = slow
api.add_exception_handler(RateLimitExceeded, _rate_limit_exceeded_handler)


@api.get("/page")
@slow.limit("3/hour")
async def slow_page(request: Request):
    return "page"


with TestClient(api) as bob:
    expect([bob.get("/page").status_code for _ in range(5)], [200, 200, 200, 429, 429])
raw.flushall()
all_is_well()
