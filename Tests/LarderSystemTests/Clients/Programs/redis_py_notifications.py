"""Keyspace notifications with redis-py. Arguments: the socket, the protocol's version."""

import sys

import redis
from expecting import all_is_well, expect, message

path, version = sys.argv[1], int(sys.argv[2])
client = redis.Redis(unix_socket_path=path, protocol=version)

expect(client.config_set("notify-keyspace-events", "KEA"), True)
events = client.pubsub(ignore_subscribe_messages=True)
events.psubscribe("__key*@0__:*")
expect(events.get_message(timeout=60), None)
client.set("noticed", "v")
expect(message(events), ("pmessage", b"__key*@0__:*", b"__keyspace@0__:noticed", b"set"))
expect(message(events), ("pmessage", b"__key*@0__:*", b"__keyevent@0__:set", b"noticed"))
client.expire("noticed", 100)
expect(message(events)[2:], (b"__keyspace@0__:noticed", b"expire"))
expect(message(events)[2:], (b"__keyevent@0__:expire", b"noticed"))
client.delete("noticed")
expect(message(events)[2:], (b"__keyspace@0__:noticed", b"del"))
expect(message(events)[2:], (b"__keyevent@0__:del", b"noticed"))
client.set("short", "v", px=20)
found = [message(events)[2:] for _ in range(6)]
expect(found, [
    (b"__keyspace@0__:short", b"set"), (b"__keyevent@0__:set", b"short"),
    (b"__keyspace@0__:short", b"expire"), (b"__keyevent@0__:expire", b"short"),
    (b"__keyspace@0__:short", b"expired"), (b"__keyevent@0__:expired", b"short"),
])
events.close()
expect(client.config_set("notify-keyspace-events", ""), True)
client.flushall()
all_is_well()
