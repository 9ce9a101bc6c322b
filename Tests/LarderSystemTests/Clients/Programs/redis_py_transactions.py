"""Transactions with redis-py. Arguments: the socket, the protocol's version."""

import sys

import redis
from expecting import all_is_well, expect, expect_error, in_threads

path, version = sys.argv[1], int(sys.argv[2])
client = redis.Redis(unix_socket_path=path, protocol=version)
ResponseError = redis.exceptions.ResponseError
WatchError = redis.exceptions.WatchError

# Queued commands run together, and their replies arrive together.
with client.pipeline(transaction=True) as pipe:
    pipe.set("a", 1).incr("a").get("a").mget("a", "nothing").expire("a", 100).ttl("a").strlen("a")
    expect(pipe.execute(), [True, 2, b"2", [b"2", None], True, 100, 1])
expect(client.get("a"), b"2")

# An error in one command does not affect the others.
with client.pipeline(transaction=True) as pipe:
    pipe.set("word", "x").incr("word").set("after", "y")
    first, error, last = pipe.execute(raise_on_error=False)
    expect((first, type(error), last), (True, ResponseError, True))
    expect("value is not an integer" in str(error), True)
expect(client.get("after"), b"y")

# If a command cannot be queued, none of the commands runs.
with client.pipeline(transaction=True) as pipe:
    pipe.set("never", 1)
    pipe.execute_command("GET")
    expect_error(ResponseError, "", pipe.execute)
expect(client.get("never"), None)

# WATCH: a change by another client, no change, a key that is created, and a key that is removed.
with client.pipeline() as pipe:
    pipe.watch("a", "gone")
    expect(pipe.get("a"), b"2")
    client.set("a", "other")
    pipe.multi()
    pipe.set("a", "mine")
    expect_error(WatchError, "", pipe.execute)
    expect(client.get("a"), b"other")

    pipe.watch("a")
    pipe.multi()
    pipe.set("a", "mine")
    expect(pipe.execute(), [True])
    expect(client.get("a"), b"mine")

    pipe.watch("new")
    client.set("new", 1)
    pipe.multi()
    pipe.get("a")
    expect_error(WatchError, "", pipe.execute)

    pipe.watch("new")
    client.delete("new")
    pipe.multi()
    pipe.get("a")
    expect_error(WatchError, "", pipe.execute)

    pipe.watch("a")
    client.flushdb()
    pipe.multi()
    pipe.get("a")
    expect_error(WatchError, "", pipe.execute)

    pipe.watch("a")
    pipe.unwatch()
    client.set("a", 5)
    pipe.multi()
    pipe.get("a")
    expect(pipe.execute(), [b"5"])

    # Commands that were not executed are discarded at the end of the block.
    pipe.watch("a")
    pipe.multi()
    pipe.set("a", "discarded")
expect(client.get("a"), b"5")


# Several connections increment a counter with WATCH; no increment is lost.
def count(_):
    mine = redis.Redis(unix_socket_path=path, protocol=version)
    for _ in range(50):
        mine.transaction(add_one, "sum")
    mine.close()


def add_one(pipe):
    found = int(pipe.get("sum") or 0)
    pipe.multi()
    pipe.set("sum", found + 1)


in_threads(8, count)
expect(client.get("sum"), b"400")

# Clients move amounts between accounts; each transaction that reads all accounts gets the same total.
accounts = [f"account {number}" for number in range(8)]
client.mset({account: 100 for account in accounts})


def move(number):
    mine = redis.Redis(unix_socket_path=path, protocol=version)
    for step in range(200):
        if number % 2:
            with mine.pipeline(transaction=True) as pipe:
                pipe.decr(accounts[(number + step) % 8], 3).incr(accounts[(number + 3 * step + 1) % 8], 3)
                pipe.execute()
        else:
            with mine.pipeline(transaction=True) as pipe:
                for account in accounts:
                    pipe.get(account)
                expect(sum(int(value) for value in pipe.execute()), 800)
    mine.close()


in_threads(8, move)

# The part of redis-py's lock that needs no script: SET NX. Its release is a script.
lock = client.set("lock", "token", nx=True, px=100_000)
expect((lock, client.set("lock", "other", nx=True, px=100_000)), (True, None))

# A transaction of many commands.
with client.pipeline(transaction=True) as pipe:
    for number in range(10_000):
        pipe.set(f"n{number}", number)
    expect(pipe.execute(), [True] * 10_000)
expect(client.mget("n0", "n9999"), [b"0", b"9999"])
client.flushall()
all_is_well()
