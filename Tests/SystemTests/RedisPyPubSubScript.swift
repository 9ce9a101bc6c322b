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
