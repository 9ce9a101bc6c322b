#!/usr/bin/env python3
"""Fetches through larderd with redis-py: of all processes that need a value, only one asks the origin.

As a module:

    @cached(redis.Redis(unix_socket_path="larder.sock", socket_timeout=None), "weather:{}", ttl=600, grace=3600)
    def weather(city):
        return requests.get(f"https://weather.example/{city}").json()

    weather("oslo")                     # asks the origin if no process has done so for ten minutes

As a program: cached.py SOCKET CITY
"""

import functools
import json
import sys

import redis


class Unavailable(Exception):
    """No value is available now: the origin failed a short time ago, or another process is still asking it."""


def cached(client, key, *, ttl=None, grace=None, jitter=None, wait=30.0, lease=None, back_off=5.0, absent_for=60.0):
    """Decorates a function that asks an origin. Its result must be convertible to JSON; None means that the origin has
    no value.

    key       the entry's key; the function's arguments replace the braces
    ttl       seconds until the value is stale; None: as the database's policy
    grace     seconds after that in which the stale value is served while one process refreshes it, or if the origin fails
    jitter    percent by which lifetimes are shortened at random
    wait      seconds to wait for another process if there is no value to serve; `client` must not have a shorter
              `socket_timeout` (redis-py 8 has one of 5 seconds by default)
    lease     seconds that the function may take; None: 30, and another process takes over at once if this one exits
    back_off  seconds for which no process asks an origin that raised an error; 0: it is asked again at once
    absent_for  seconds for which no process asks an origin that returned None; 0: it is asked again at once
    """
    options = []
    if ttl is not None:
        options += ["PX", int(ttl * 1000)]
    for word, value in (("GRACE", grace), ("JITTER", jitter)):
        if value is not None:
            options += [word, value]
    asking = ["WAIT", int(wait * 1000)] + ([] if lease is None else ["LEASE", int(lease * 1000)])

    def release(name, token, word, seconds):
        client.execute_command("RELEASE", name, token, *([word, int(seconds * 1000)] if seconds > 0 else []))

    def decorate(function):
        @functools.wraps(function)
        def call(*arguments):
            name = key.format(*arguments)
            state, value, token, *_ = client.execute_command("FETCH", name, *asking)
            state = state.decode() if isinstance(state, bytes) else state
            if state == "absent":
                return None
            if state in ("failed", "wait"):
                raise Unavailable(f"{name}: {state}")
            if state != "lead":
                return json.loads(value)
            try:
                found = function(*arguments)
                text = None if found is None else json.dumps(found)
            except Exception:
                release(name, token, "FAILED", back_off)
                if value is None:
                    raise
                return json.loads(value)
            except BaseException:
                # This program is about to exit: let another process ask at once.
                client.execute_command("RELEASE", name, token)
                raise
            if text is None:
                release(name, token, "ABSENT", absent_for)
            else:
                # If the entry was written or purged in the meantime, this stores nothing. The value is still correct.
                client.execute_command("SET", name, text, *options, "TOKEN", token)
            return found

        return call

    return decorate


def main(arguments):
    if len(arguments) != 2:
        print("usage: cached.py SOCKET CITY", file=sys.stderr)
        return 2

    @cached(redis.Redis(unix_socket_path=arguments[0], socket_timeout=None), "weather:{}", ttl=600, grace=3600)
    def weather(city):
        print("python asks the origin", file=sys.stderr)
        if city == "atlantis":
            return None
        if city == "hell":
            raise OSError("the origin does not answer")
        return {"city": city, "sky": "rain"}

    try:
        found = weather(arguments[1])
    except (OSError, Unavailable) as error:
        print(error, file=sys.stderr)
        return 3
    if found is None:
        return 1
    print(f"{found['city']}: {found['sky']}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
