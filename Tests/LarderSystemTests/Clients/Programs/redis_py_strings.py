"""Strings, keys, expiry and pipelines with redis-py. Arguments: the socket, the protocol's version."""

import sys
import time

import redis
from expecting import all_is_well, expect, expect_error, expect_in, in_threads

path, version = sys.argv[1], int(sys.argv[2])
client = redis.Redis(unix_socket_path=path, protocol=version, client_name="a-test")
ResponseError = redis.exceptions.ResponseError

expect(client.ping(), True)
expect_in(client.client_getname(), (b"a-test", "a-test"))
expect(client.echo("é"), "é".encode())

# Values with any bytes.
expect(client.set("k", b"\x00\xff value\r\n"), True)
expect(client.get("k"), b"\x00\xff value\r\n")
expect(client.get("nothing"), None)
expect(client.set("empty", ""), True)
expect(client.get("empty"), b"")
expect(client.set("k", "new", nx=True), None)
expect(client.set("k", "new", xx=True, get=True), b"\x00\xff value\r\n")
expect(client.set("k", "newer", keepttl=True), True)
expect(client.setnx("k", "x"), False)
expect(client.setnx("once", "x"), True)
expect(client.getset("once", "y"), b"x")
expect(client.append("once", "z"), 2)
expect(client.getrange("once", 0, -1), b"yz")
expect(client.setrange("once", 5, "end"), 8)
expect(client.get("once"), b"yz\0\0\0end")
expect(client.substr("once", 0, 1), b"yz")
expect(client.strlen("once"), 8)
expect(client.getdel("once"), b"yz\0\0\0end")
expect(client.getdel("once"), None)
large = b"0123456789abcdef" * (1 << 18)
expect(client.set("large", large), True)
expect(client.get("large") == large, True)
expect(client.delete("large"), 1)

# Numbers.
expect(client.incr("number"), 1)
expect(client.incr("number", 41), 42)
expect(client.decr("number", 2), 40)
expect(client.incrbyfloat("number", 0.5), 40.5)
expect_error(ResponseError, "value is not an integer or out of range", client.incr, "number")
expect(client.delete("number"), 1)

# Bits.
expect(client.setbit("bits", 7, 1), 0)
expect(client.getbit("bits", 7), 1)
expect(client.bitcount("bits"), 1)
expect(client.bitpos("bits", 1), 7)
expect(client.set("other bits", b"\xf0"), True)
expect(client.bitop("OR", "both", "bits", "other bits"), 1)
expect(client.get("both"), b"\xf1")
expect(client.bitfield("bits").set("u8", 8, 200).incrby("u8", 8, 100, overflow="SAT").get("u8", 8).execute(), [0, 255, 255])
expect(client.delete("bits", "other bits", "both"), 3)

# Expiry.
expect(client.set("soon", "x", ex=100), True)
expect_in(client.ttl("soon"), (99, 100))
expect_in(client.pttl("soon") // 1000, (98, 99, 100))
expect(client.persist("soon"), True)
expect(client.ttl("soon"), -1)
expect(client.ttl("nothing"), -2)
expect(client.expire("soon", 50, nx=True), True)
expect(client.expire("soon", 60, lt=True), False)
expect(client.expire("soon", 60, gt=True), True)
expect(client.pexpireat("soon", 4102444800000), True)
expect(client.expiretime("soon"), 4102444800)
expect(client.pexpiretime("soon"), 4102444800000)
expect(client.setex("later", 100, "v"), True)
expect(client.psetex("later", 100_000, "w"), True)
expect(client.getex("later", persist=True), b"w")
expect(client.ttl("later"), -1)
expect(client.set("gone", "v", px=1), True)
deadline = time.monotonic() + 60
while client.exists("gone"):
    expect(time.monotonic() < deadline, True)
expect(client.get("gone"), None)
expect_error(ResponseError, "invalid expire time in 'setex' command", client.setex, "later", 0, "v")

# Many keys.
expect(client.mset({f"m{n}": str(n) for n in range(500)}), True)
expect(client.mget("m0", "nothing", "m499"), [b"0", None, b"499"])
expect(client.msetnx({"m0": "x", "unseen": "x"}), False)
expect(client.exists("unseen"), 0)
expect(sorted(client.scan_iter("m1*", count=7)), sorted(f"m{n}".encode() for n in range(500) if str(n)[0] == "1"))
expect(len(set(client.scan_iter("m*", count=13, _type="string"))), 500)
expect(set(client.scan_iter("m*", count=13, _type="hash")), set())
expect(client.exists("m0", "m1", "nothing"), 2)
expect(client.touch("m0", "nothing"), 1)
expect(client.type("m0"), b"string")
expect(client.rename("m0", "moved"), True)
expect_error(ResponseError, "no such key", client.rename, "m0", "moved")
expect(client.renamenx("moved", "m1"), False)
expect(client.copy("moved", "copied"), True)
expect(client.get("copied"), b"0")
expect(client.object("encoding", "m499"), b"int")
expect(client.restore("restored", 0, client.dump("m499")), b"OK")
expect(client.get("restored"), b"499")
expect_in(client.randomkey()[:1], (b"m", b"k", b"e", b"s", b"l", b"c", b"r"))
expect(client.delete("m1", "m2", "nothing"), 2)
expect(client.unlink("m3"), 1)
keys = client.dbsize()
expect(len(client.keys("m*")), 497)
expect(client.move("copied", 1), True)
expect(client.dbsize(), keys - 1)

# What clients query about the server.
expect(client.info("server")["redis_version"].startswith("7.0."), True)
# Only readable keys are counted: expired keys are not, whether they have been removed or not.
expect(client.info()["db0"]["keys"], len(client.keys("*")))
expect(client.command_count() > 30, True)
expect(client.command()["get"]["arity"], 2)
expect("get" in {name.decode().lower() for name in client.command_list()}, True)
expect_in(client.command_getkeys("MSET", "a", "1", "b", "2"), ([b"a", b"b"], ["a", "b"]))
seconds, microseconds = client.time()
expect(abs(seconds - time.time()) < 60 and 0 <= microseconds < 1_000_000, True)
expect(client.config_get("maxclients")["maxclients"].isdigit(), True)
expect(client.client_id() > 0, True)
expect(client.client_info()["name"], "a-test")
expect("a-test" in {each["name"] for each in client.client_list()}, True)
expect_error(ResponseError, "value is not an integer or out of range", client.execute_command, "EXPIRE", "k", "x")
expect_error(ResponseError, "unknown command 'NOSUCH'", client.execute_command, "NOSUCH", "x")
expect_error(ResponseError, "wrong number of arguments for 'get' command", client.execute_command, "GET")

# Text instead of bytes, and other databases.
with redis.Redis(unix_socket_path=path, protocol=version, decode_responses=True, db=2) as text:
    expect(text.get("k"), None)
    expect(text.set("title", "一本书"), True)
    expect(text.get("title"), "一本书")
    expect(client.get("title"), None)
    expect(text.dbsize(), 1)
    expect(text.flushdb(), True)

# All requests are sent before the first reply is read.
pipe = client.pipeline(transaction=False)
for number in range(50_000):
    pipe.set(f"p{number % 100}", "v" * 100)
    pipe.get(f"p{number % 100}")
replies = pipe.execute()
expect(replies[0::2], [True] * 50_000)
expect(replies[1::2], [b"v" * 100] * 50_000)

# An error in the middle of a pipeline affects only its own command.
pipe = client.pipeline(transaction=False)
pipe.set("before", 1).incr("k").get("before")
before, error, after = pipe.execute(raise_on_error=False)
expect((before, type(error), after), (True, ResponseError, b"1"))


# Many connections at once.
def work(number):
    mine = redis.Redis(unix_socket_path=path, protocol=version)
    for step in range(100):
        mine.set(f"t{number}", str(step))
        expect(mine.get(f"t{number}"), str(step).encode())
        mine.incr("shared")
    mine.close()


in_threads(16, work)
expect(client.get("shared"), b"1600")
expect(client.flushall(), True)
expect(client.dbsize(), 0)
all_is_well()
