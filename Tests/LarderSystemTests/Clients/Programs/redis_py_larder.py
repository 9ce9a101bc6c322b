"""Larder's own commands with redis-py. Arguments: the socket, the protocol's version."""

import sys

import redis
from expecting import all_is_well, expect, expect_in

path, version = sys.argv[1], int(sys.argv[2])
client = redis.Redis(unix_socket_path=path, protocol=version)


def pairs(reply):
    """Converts the RESP2 form of a map, a list of names and values."""
    return reply if isinstance(reply, dict) else dict(zip(reply[0::2], reply[1::2]))


# Databases with names.
books = redis.Redis(unix_socket_path=path, protocol=version, single_connection_client=True)
expect_in(books.execute_command("SELECT", "books"), (True, b"OK"))
expect_in(books.execute_command("SET", "title", "一本书", "POLICY", "low"), (True, b"OK"))
meta = pairs(books.execute_command("META", "title"))
expect(meta[b"rule"], b"own")
expect(meta[b"size"], 9)
expect(client.get("title"), None)

# Policies.
books.execute_command("POLICY", "lowest")
expect(pairs(books.execute_command("POLICY"))[b"policy"], b"lowest")
expect_in(books.execute_command("POLICY", "middle"), (True, b"OK"))
expect(books.set("governed", "x"), True)
expect_in(books.ttl("governed"), (3599, 3600))
expect_in(books.ttl("title") // 3600, (23, 24))

# A snapshot shows the data of one instant, even if other clients change it.
expect(books.execute_command("SNAPSHOT", "OPEN"), b"OK")
other = redis.Redis(unix_socket_path=path, protocol=version, single_connection_client=True)
expect_in(other.execute_command("SELECT", "books"), (True, b"OK"))
expect(other.execute_command("PURGE", "PREFIX", "t") is not None, True)
expect(other.get("title"), None)
expect(books.get("title"), "一本书".encode())
expect(books.execute_command("SNAPSHOT", "CLOSE"), b"OK")
expect(books.get("title"), None)
expect(books.get("governed"), b"x")

names = {pairs(each)[b"name"] for each in client.execute_command("DATABASES")}
expect(b"books" in names, True)
expect(books.flushdb(), True)
expect(books.dbsize(), 0)
books.close()
other.close()
all_is_well()
