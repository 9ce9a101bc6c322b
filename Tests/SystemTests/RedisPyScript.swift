/// What redis-py sees of larderd. Run with the socket's path and the protocol's version; prints one line if all is well.
let redisPyScript = #"""
    import sys
    import threading

    import redis

    path, version = sys.argv[1], int(sys.argv[2])
    client = redis.Redis(unix_socket_path=path, protocol=version, client_name="a-test")


    def expect(found, wanted):
        if found != wanted:
            raise AssertionError(f"found {found!r}, wanted {wanted!r}")


    def expect_error(text, call, *words):
        try:
            call(*words)
        except redis.exceptions.ResponseError as error:
            if not str(error).startswith(text):
                raise AssertionError(f"found {error}, wanted {text}") from error
        else:
            raise AssertionError(f"{words}: no error, wanted {text}")


    expect(client.ping(), True)
    expect(client.client_getname() in (b"a-test", "a-test"), True)
    expect(client.set("k", b"\x00\xff value"), True)
    expect(client.get("k"), b"\x00\xff value")
    expect(client.get("nothing"), None)
    expect(client.set("k", "new", nx=True), None)
    expect(client.set("k", "new", xx=True, get=True), b"\x00\xff value")
    expect(client.set("soon", "x", ex=100), True)
    expect(client.ttl("soon") in (99, 100), True)
    expect(client.persist("soon"), True)
    expect(client.ttl("soon"), -1)
    expect(client.expire("soon", 50, nx=True), True)
    expect(client.expire("soon", 60, lt=True), False)
    expect(client.pexpireat("soon", 4102444800000), True)
    expect(client.expiretime("soon"), 4102444800)
    expect(client.mset({f"m{n}": str(n) for n in range(500)}), True)
    expect(client.mget("m0", "nothing", "m499"), [b"0", None, b"499"])
    expect(sorted(client.scan_iter("m1*", count=7)), sorted(f"m{n}".encode() for n in range(500) if str(n)[0] == "1"))
    expect(client.exists("m0", "m1", "nothing"), 2)
    expect(client.type("m0"), b"string")
    expect(client.strlen("m100"), 3)
    expect(client.getdel("m100"), b"100")
    expect(client.delete("m1", "m2", "nothing"), 2)
    expect(client.unlink("m3"), 1)
    expect(client.dbsize(), 498)
    expect(len(client.keys("m*")), 496)
    expect(client.echo("é"), "é".encode())
    expect(client.info("server")["redis_version"], "7.0.0")
    expect(client.info()["db0"]["keys"], 498)
    expect(client.command_count() > 30, True)
    expect(client.command()["get"]["arity"], 2)
    expect("get" in {name.decode().lower() for name in client.command_list()}, True)
    expect_error("unknown command", client.lpush, "list", "x")
    expect_error("value is not an integer", client.execute_command, "EXPIRE", "k", "x")

    # All requests are sent before the first reply is read.
    pipe = client.pipeline(transaction=False)
    for number in range(50_000):
        pipe.set(f"p{number % 100}", "v" * 100)
        pipe.get(f"p{number % 100}")
    replies = pipe.execute()
    expect(replies[0::2], [True] * 50_000)
    expect(replies[1::2], [b"v" * 100] * 50_000)

    # Numbers, parts of values, bits, keys.
    expect(client.incr("n", 5), 5)
    expect(client.decr("n"), 4)
    expect(client.incrbyfloat("n", 0.25), 4.25)
    expect(client.append("n", "!"), 5)
    expect(client.getrange("n", 0, -2), b"4.25")
    expect(client.setrange("n", 6, "x"), 7)
    expect(client.getex("n", ex=100), b"4.25!\x00x")
    expect(client.ttl("n") in (99, 100), True)
    expect(client.setnx("n", "1"), False)
    expect(client.setex("n2", 100, "2"), True)
    expect(client.psetex("n2", 100000, "2"), True)
    expect(client.getset("n2", "3"), b"2")
    expect(client.msetnx({"n": 1, "n3": 2}), False)
    expect(client.setbit("bits", 9, 1), 0)
    expect(client.getbit("bits", 9), 1)
    expect(client.bitcount("bits"), 1)
    expect(client.bitpos("bits", 1), 9)
    expect(client.bitop("NOT", "not", "bits"), 2)
    expect(client.bitfield("field").set("u8", "#0", 200).incrby("u8", "#0", 100).execute(), [0, 44])
    expect(client.rename("bits", "bits2"), True)
    expect(client.renamenx("bits2", "n"), False)
    expect(client.copy("n", "n4"), True)
    expect(client.copy("n", "n4"), False)
    expect(client.copy("n", "n4", destination_db=5, replace=True), True)
    expect(client.move("n4", 6), True)
    expect(client.touch("n", "n4"), 1)
    expect(client.randomkey() is not None, True)
    expect(client.restore("n5", 0, client.dump("n")) in (True, b"OK"), True)
    expect(client.get("n5"), b"4.25!\x00x")
    expect(client.object("encoding", "n5"), b"embstr")
    expect(client.memory_usage("n5") > 100, True)
    expect(client.mset({"left": "ohmytext", "right": "mynewtext"}), True)
    expect(client.lcs("left", "right"), b"mytext")
    expect(client.lcs("left", "right", len=True), 6)
    expect(client.execute_command("DIGEST", "left") is not None, True)
    expect(client.execute_command("DELEX", "left", "IFNE", "ohmytext"), 0)
    expect(client.swapdb(5, 7), True)

    # Names of databases, and our own commands.
    books = redis.Redis(unix_socket_path=path, protocol=version, single_connection_client=True)
    expect(books.execute_command("SELECT", "books") in (True, b"OK"), True)
    expect(books.execute_command("SET", "title", "一本书", "POLICY", "low") in (True, b"OK"), True)
    meta = books.execute_command("META", "title")
    meta = meta if isinstance(meta, dict) else dict(zip(meta[0::2], meta[1::2]))
    expect(meta[b"rule"], b"own")
    expect(meta[b"size"], 9)
    expect(books.execute_command("SNAPSHOT", "OPEN"), b"OK")
    expect(client.get("title"), None)
    other = redis.Redis(unix_socket_path=path, protocol=version)
    expect(other.execute_command("PURGE", "PREFIX", "p") is not None, True)
    expect(books.get("title"), "一本书".encode())
    expect(books.execute_command("SNAPSHOT", "CLOSE"), b"OK")
    expect(books.flushdb(), True)
    expect(books.dbsize(), 0)
    books.close()

    # Many connections at once.
    failures = []


    def work(number):
        try:
            mine = redis.Redis(unix_socket_path=path, protocol=version)
            for step in range(100):
                mine.set(f"t{number}", str(step))
                expect(mine.get(f"t{number}"), str(step).encode())
            mine.close()
        except Exception as error:  # every failure of a thread is a failure of the test
            failures.append(error)


    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(failures, [])
    expect(client.flushall(), True)
    expect(client.dbsize(), 0)
    print("all is well")

    """#
