"""Publish and subscribe with redis-py. Arguments: the socket, the protocol's version."""

import sys

import redis
from expecting import all_is_well, expect, in_threads, message

path, version = sys.argv[1], int(sys.argv[2])
client = redis.Redis(unix_socket_path=path, protocol=version)

news = client.pubsub()
news.subscribe("news", "sport")
expect(message(news), ("subscribe", None, b"news", 1))
expect(message(news), ("subscribe", None, b"sport", 2))
expect(client.publish("news", b"\x00first\r\n"), 1)
expect(client.publish("weather", "nobody hears"), 0)
expect(message(news), ("message", None, b"news", b"\x00first\r\n"))
news.psubscribe("n*", "[st]port")
expect(message(news), ("psubscribe", None, b"n*", 3))
expect(message(news), ("psubscribe", None, b"[st]port", 4))
expect(client.publish("news", "second"), 2)
expect(message(news), ("message", None, b"news", b"second"))
expect(message(news), ("pmessage", b"n*", b"news", b"second"))

# What other clients can query.
expect(sorted(client.pubsub_channels()), [b"news", b"sport"])
expect(client.pubsub_channels("s*"), [b"sport"])
expect(client.pubsub_numsub("news", "weather"), [(b"news", 1), (b"weather", 0)])
expect(client.pubsub_numpat(), 2)

# A subscriber can send PING.
news.ping("still there")
expect(message(news)[0], "pong")
news.unsubscribe("news")
expect(message(news), ("unsubscribe", None, b"news", 3))
expect(client.publish("news", "third"), 1)
expect(message(news), ("pmessage", b"n*", b"news", b"third"))
news.punsubscribe()
news.unsubscribe()
ends = sorted(message(news) for _ in range(3))
expect([(end[0], end[2]) for end in ends], [
    ("punsubscribe", b"[st]port"), ("punsubscribe", b"n*"), ("unsubscribe", b"sport")])
expect(client.publish("news", "fourth"), 0)

# The same connection can subscribe again.
news.subscribe("again")
expect(message(news), ("subscribe", None, b"again", 1))
news.close()

# A message published in a transaction arrives after the transaction has run.
watcher = client.pubsub(ignore_subscribe_messages=True)
watcher.subscribe("events")
expect(watcher.get_message(timeout=60), None)
with client.pipeline(transaction=True) as pipe:
    pipe.set("k", "v").publish("events", "stored").get("k")
    expect(pipe.execute(), [True, 1, b"v"])
expect(message(watcher), ("message", None, b"events", b"stored"))
watcher.close()

# Every subscriber gets all messages, and the messages of each publisher in order.
publishers, subscribers, count = 4, 4, 500
listening = []
for _ in range(subscribers):
    listener = client.pubsub()
    listener.subscribe("many")
    expect(message(listener)[0], "subscribe")
    listening.append(listener)


def work(number):
    if number < publishers:
        mine = redis.Redis(unix_socket_path=path, protocol=version)
        for step in range(count):
            expect(mine.publish("many", f"{number} {step}"), subscribers)
        mine.close()
        return
    nexts = [0] * publishers
    for _ in range(publishers * count):
        sender, step = map(int, message(listening[number - publishers])[3].split())
        expect(step, nexts[sender])
        nexts[sender] += 1
    expect(nexts, [count] * publishers)


in_threads(publishers + subscribers, work)
for listener in listening:
    listener.close()

# A thread that handles messages, as in applications.
heard = []
handler = client.pubsub(ignore_subscribe_messages=True)
handler.subscribe(**{"handled": lambda found: heard.append(found["data"])})
thread = handler.run_in_thread(sleep_time=0.01)
while client.publish("handled", "one") == 0:
    pass
while not heard:
    pass
expect(heard[0], b"one")
thread.stop()
thread.join()

client.flushall()
all_is_well()
