"""JSON entries with redis-py's json(). Arguments: the socket, the protocol's version."""

import sys

import redis
from expecting import all_is_well, expect, expect_error

path, version = sys.argv[1], int(sys.argv[2])
client = redis.Redis(unix_socket_path=path, protocol=version, decode_responses=True)
documents = client.json()
ResponseError = redis.exceptions.ResponseError

book = {"title": "Sea", "tags": ["a", "b"], "stock": 2, "price": 8.5, "sold": False, "author": {"name": "Bo", "born": None}}
expect(documents.set("book", "$", book), True)
expect(documents.get("book"), book)
expect(documents.get("book", "$.title", "$..name"), {"$.title": ["Sea"], "$..name": ["Bo"]})
expect(documents.get("book", ".author.name"), "Bo")
expect(documents.get("none"), None)
expect(documents.set("book", "$.title", "Land", nx=True), None)
expect(documents.set("book", "$.title", "Land", xx=True), True)
expect(documents.set("book", "$.year", 1990), True)
expect(documents.set("book", "$.shop.place", 1), None)
expect_error(ResponseError, "new objects must be created at the root", lambda: documents.set("none", "$.a", 1))

# Numbers, booleans, strings.
expect(documents.numincrby("book", "$.stock", 3), [5])
expect(documents.nummultby("book", "$.price", 2), [17.0])
expect(documents.numincrby("book", "$.title", 1), [None])
expect(documents.toggle("book", "$.sold"), [1])
expect(documents.strappend("book", " of", "$.title"), [7])
expect(documents.strlen("book", "$.title"), [7])
expect_error(ResponseError, "could not perform", lambda: documents.numincrby("none", "$.stock", 1))

# Arrays and objects.
expect(documents.arrappend("book", "$.tags", "c", {"d": 1}), [4])
expect(documents.arrindex("book", "$.tags", "c"), [2])
expect(documents.arrindex("book", "$.tags", "z"), [-1])
expect(documents.arrinsert("book", "$.tags", 0, "first"), [5])
expect(documents.arrlen("book", "$.tags"), [5])
expect(documents.arrpop("book", "$.tags"), ['{"d":1}'])
expect(documents.arrpop("book", "$.tags", 0), ['"first"'])
expect(documents.arrtrim("book", "$.tags", 0, 1), [2])
expect(documents.get("book", "$.tags"), [["a", "b"]])
expect(documents.objkeys("book", "$.author"), [["name", "born"]])
expect(documents.objlen("book", "$.author"), [2])
expect(documents.type("book", "$.stock"), ["integer"] if version == 2 else [["integer"]])

# Several keys.
expect(documents.mset([("x", "$", {"n": 1}), ("y", "$", {"n": 2})]), True)
expect(documents.mget(["x", "none", "y"], "$.n"), [[1], None, [2]])
expect(documents.merge("x", "$", {"n": None, "m": {"k": 1, "z": None}}), True)
expect(documents.get("x"), {"m": {"k": 1}})

# Removing.
expect(documents.clear("book", "$.tags"), 1)
expect(documents.delete("book", "$..name"), 1)
expect(documents.forget("book", "$.year"), 1)
expect(
    documents.get("book"),
    {"title": "Land of", "tags": [], "stock": 5, "price": 17.0, "sold": True, "author": {"born": None}},
)
expect(documents.delete("book"), 1)
expect(client.exists("book"), 0)

# JSON entries are ordinary entries.
client.set("plain", '{ "a": 1.50 }', px=60000)
expect(documents.numincrby("plain", "$.b", 1), [])
expect(documents.set("plain", "$.c", 1), True)
expect(client.get("plain"), '{ "a": 1.50,"c":1 }')
expect(0 < client.pttl("plain") <= 60000, True)
client.set("text", "not JSON")
expect_error(ResponseError, "WRONGTYPE", lambda: documents.get("text"))

# A transaction, and a script.
with client.pipeline() as pipeline:
    pipeline.json().numincrby("y", "$.n", 5)
    pipeline.json().get("y")
    expect(pipeline.execute(), [[7] if version == 3 else [7], {"n": 7}])
expect(client.eval("return redis.call('EDIT', KEYS[1], 'INCR', 'n', '3', 'RETURN', 'n')", 1, "y"), "10")

all_is_well()
