"""Tests the options of Examples/clients/python/cached.py. Argument: the socket."""

import os
import sys

import redis

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../../Examples/clients/python"))
from cached import Unavailable, cached

client = redis.Redis(unix_socket_path=sys.argv[1], socket_timeout=None)
other = redis.Redis(unix_socket_path=sys.argv[1], socket_timeout=None)


def within(number, least, most):
    assert least < number <= most, f"{number} is not within {least} and {most}"


def asked(key):
    """The state of a key and its remaining time, as another connection sees them. Releases a lease that FETCH grants."""
    state, _, token, _, _, left = other.execute_command("FETCH", key)
    if token is not None:
        other.execute_command("RELEASE", key, token)
    return state.decode(), left


def call(key, result, **options):
    def origin():
        if isinstance(result, Exception):
            raise result
        return result() if callable(result) else result

    return cached(client, key, **options)(origin)()


# The lifetime of an entry.
assert call("stored", [1, "two"], ttl=100.5, grace=60, jitter=0) == [1, "two"]
within(other.pttl("stored"), 30_000, 100_500)
meta = other.execute_command("META", "stored")
if isinstance(meta, list):
    # RESP2 has no maps.
    meta = dict(zip(meta[::2], meta[1::2]))
assert meta[b"grace"] == 60_000, meta
assert call("stored", None) == [1, "two"]
try:
    call("jitter", 1, ttl=100, jitter=1000)
    raise AssertionError("a jitter of 1000 % was taken")
except redis.ResponseError:
    pass

# Remembered absences and failures of the origin.
assert call("absent", None, absent_for=100.5) is None
state, left = asked("absent")
assert state == "absent"
within(left, 30_000, 100_500)
assert call("asked again", None, absent_for=0) is None
assert asked("asked again")[0] == "lead"
for key, back_off, wanted in (("failed", 100.5, "failed"), ("tried again", 0, "lead")):
    try:
        call(key, OSError("down"), back_off=back_off)
        raise AssertionError("no error")
    except OSError:
        pass
    state, left = asked(key)
    assert state == wanted, (key, state)
    if state == "failed":
        within(left, 30_000, 100_500)

# The lease, and how long other clients wait.
def origin():
    state, left = asked("leased")
    assert state == "wait", state
    within(left, 30_000, 100_500)
    try:
        cached(redis.Redis(unix_socket_path=sys.argv[1], socket_timeout=None), "leased", wait=0.05)(lambda: 1)()
        raise AssertionError("it did not wait")
    except Unavailable:
        return 5


assert call("leased", origin, lease=100.5) == 5
print("all is well")
