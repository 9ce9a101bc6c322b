/// redis-py's publish and subscribe against larderd. Run with the socket's path and the protocol's version.
let redisPyPubSubScript = #"""
    import sys
    import threading

    import redis

    path, version = sys.argv[1], int(sys.argv[2])
    client = redis.Redis(unix_socket_path=path, protocol=version, decode_responses=True)


    def expect(found, wanted):
        if found != wanted:
            raise AssertionError(f"found {found!r}, wanted {wanted!r}")


    def next_message(listener, kind):
        while True:
            message = listener.get_message(timeout=60)
            if message is None:
                raise AssertionError(f"no {kind} came")
            if message["type"] == kind:
                return message


    listener = client.pubsub()
    listener.subscribe("news", "weather")
    listener.psubscribe("n*")
    expect(next_message(listener, "subscribe")["channel"], "news")
    expect(next_message(listener, "subscribe")["data"], 2)
    expect(next_message(listener, "psubscribe")["data"], 3)
    expect(client.publish("news", "good"), 2)
    expect(next_message(listener, "message"), {"type": "message", "pattern": None, "channel": "news", "data": "good"})
    expect(
        next_message(listener, "pmessage"),
        {"type": "pmessage", "pattern": "n*", "channel": "news", "data": "good"},
    )
    expect(sorted(client.pubsub_channels()), ["news", "weather"])
    expect(client.pubsub_numsub("news", "nothing"), [("news", 1), ("nothing", 0)])
    expect(client.pubsub_numpat(), 1)
    listener.ping()
    listener.unsubscribe("news")
    expect(next_message(listener, "unsubscribe")["channel"], "news")
    expect(client.publish("news", "again"), 1)
    expect(next_message(listener, "pmessage")["data"], "again")
    listener.close()

    # A thread of redis-py's own that handles messages, while many publish.
    handled = []
    done = threading.Event()


    def handle(message):
        handled.append(message["data"])
        if len(handled) == 2000:
            done.set()


    listener = client.pubsub(ignore_subscribe_messages=True)
    listener.subscribe(work=handle)
    worker = listener.run_in_thread(sleep_time=0.01)
    while client.pubsub_numsub("work") != [("work", 1)]:
        pass


    def publish(number):
        mine = redis.Redis(unix_socket_path=path, protocol=version)
        for step in range(500):
            mine.publish("work", f"{number}:{step}")
        mine.close()


    publishers = [threading.Thread(target=publish, args=(number,)) for number in range(4)]
    for publisher in publishers:
        publisher.start()
    for publisher in publishers:
        publisher.join()
    expect(done.wait(60), True)
    for number in range(4):
        mine = [item for item in handled if item.startswith(f"{number}:")]
        expect(mine, [f"{number}:{step}" for step in range(500)])
    worker.stop()
    worker.join()

    print("all is well")

    """#

/// redis-py's client-side cache over CLIENT TRACKING against larderd, and notifications through its pubsub. Run with the
/// socket's path.
let redisPyTrackingScript = #"""
    import sys
    import time

    import redis
    from redis.cache import CacheConfig

    path = sys.argv[1]


    def expect(found, wanted):
        if found != wanted:
            raise AssertionError(f"found {found!r}, wanted {wanted!r}")


    class LocalConnection(redis.UnixDomainSocketConnection):
        """redis-py's cache asks every connection for the names that only those of TCP have."""

        host, port = "local", 0


    # The cache wants a version that we do not claim to be.
    redis.connection.CacheProxyConnection.MIN_ALLOWED_VERSION = "7.0.0"
    reader = redis.Redis(
        connection_pool=redis.ConnectionPool(
            connection_class=LocalConnection, path=path, protocol=3, max_connections=1,
            cache_config=CacheConfig(max_size=100),
        )
    )
    writer = redis.Redis(unix_socket_path=path, protocol=3)
    cache = reader.get_cache()
    writer.set("k", "0")
    for step in range(200):
        # It looks for what has arrived, and does not wait for what is under way.
        while (found := reader.get("k")) != str(step).encode():
            expect(int(found), step - 1)
        expect(cache.size, 1)
        expect(reader.get("k"), str(step).encode())
        writer.set("k", str(step + 1))
    writer.flushall()
    while reader.get("k") is not None:
        pass

    # Expiry is told of within a second.
    listener = redis.Redis(unix_socket_path=path, protocol=3, decode_responses=True).pubsub(ignore_subscribe_messages=True)
    listener.psubscribe("__keyevent@0__:expired")
    listener.get_message(timeout=60)
    writer.set("soon", "v", px=50)
    while (message := listener.get_message(timeout=60)) is None:
        pass
    expect(message["data"], "soon")
    print("all is well")

    """#
