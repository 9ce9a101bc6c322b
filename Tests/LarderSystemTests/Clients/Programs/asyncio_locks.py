"""Locks and stores of libraries for asyncio: aiocache, cashews, litestar, fastapi-cache2. Argument: the socket."""

import asyncio
import contextlib
import sys

import redis.asyncio
from aiocache import RedisCache, cached_stampede
from aiocache.lock import OptimisticLock, OptimisticLockError, RedLock
from aiocache.serializers import JsonSerializer
from cashews import cache as cashews, register_backend
from cashews.backends.redis import Redis
from cashews.exceptions import RateLimitError
from cashews.picklers import PicklerType
from expecting import all_is_well, expect, expect_in
from fastapi import FastAPI
from fastapi.testclient import TestClient
from fastapi_cache import FastAPICache
from fastapi_cache.backends.redis import RedisBackend
from fastapi_cache.decorator import cache as fastapi_cached
from litestar import Litestar, Request, get
from litestar.middleware.session.server_side import ServerSideSessionConfig
from litestar.stores.redis import RedisStore
from litestar.testing import TestClient as LitestarClient

path = sys.argv[1]


async def expect_error(kind, call):
    try:
        found = await call
    except kind:
        return
    raise AssertionError(f"found {found!r}, wanted {kind}")


async def in_aiocache(raw):
    """Uses a connection class with Unix sockets, because aiocache itself does not support them."""

    def connect():
        return RedisCache(
            namespace="aio", serializer=JsonSerializer(),
            connection_pool_class=lambda **_: redis.asyncio.ConnectionPool(
                connection_class=redis.asyncio.UnixDomainSocketConnection, path=path))

    cache, other = connect(), connect()
    expect(await cache.set("model", {"title": "一本书"}, ttl=100), True)
    expect(await other.get("model"), {"title": "一本书"})
    # A process that does not have the lock waits at most for its lease, and cannot release it.
    async with RedLock(cache, "key", lease=100):
        key = cache.build_key("key-lock")
        expect_in(await raw.ttl(key), (99, 100))
        expect(await cache._redlock_release(key, "somebody else's"), 0)
        expect(await raw.exists(key), 1)
    expect(await raw.exists(key), 0)
    made, asked, answer = [], asyncio.Event(), asyncio.Event()

    @cached_stampede(lease=100, cache=RedisCache, namespace="stampede", key="value",
                     connection_pool_class=lambda **_: redis.asyncio.ConnectionPool(
                         connection_class=redis.asyncio.UnixDomainSocketConnection, path=path))
    async def value():
        made.append(1)
        asked.set()
        await answer.wait()
        return "made"

    # aiocache has two race conditions: a task does not wait if it sees the lock before its holder does, and it finds no
    # event if it takes the lock while the holder is releasing it. So start the other tasks when the first has the lock, and
    # let all of them wait before it ends.
    first = asyncio.create_task(value())
    await asked.wait()
    others = [asyncio.create_task(value()) for _ in range(20)]
    [released] = RedLock._EVENTS.values()
    while len(released._waiters) < len(others):
        await asyncio.sleep(0.001)
    answer.set()
    expect(await asyncio.gather(first, *others), ["made"] * 21)
    expect(made, [1])
    # Compare-and-set.
    await cache.set("counted", 1)
    async with OptimisticLock(cache, "counted") as lock:
        expect(await lock.cas(2, ttl=100), True)
    expect_in(await raw.ttl(cache.build_key("counted")), (99, 100))
    async with OptimisticLock(cache, "counted") as lock:
        await other.set("counted", 3)
        await expect_error(OptimisticLockError, lock.cas(4))
    expect(await cache.get("counted"), 3)
    await cache.close()
    await other.close()


async def in_cashews(raw):
    # cashews itself does not support Unix sockets, but its connections do. Without `suppress=False` it hides server errors.
    register_backend("unix", Redis, pass_uri=True, pickler=PicklerType.DEFAULT)
    cashews.setup(f"unix://{path}?db=0", suppress=False)
    await cashews.set("model", {"title": "一本书"}, expire="100s")
    expect(await cashews.get("model"), {"title": "一本书"})
    expect_in(await cashews.get_expire("model"), (99, 100))
    # A lock, which others cannot release or take.
    async with cashews.lock("lock", expire=100):
        expect(await cashews.is_locked("lock"), True)
        expect(await cashews.unlock("lock", "somebody else's"), 0)
        expect(await cashews.set_lock("lock", "x", expire=100), False)
    expect(await cashews.is_locked("lock"), False)
    at_once, most = [], []

    @cashews.locked(ttl=100, key="work", check_interval=0.001)
    async def work():
        at_once.append(1)
        most.append(len(at_once))
        await asyncio.sleep(0.001)
        at_once.pop()

    await asyncio.gather(*(work() for _ in range(8)))
    expect(most, [1] * 8)
    # Counters with an expiry: a rate limit and a hit counter.
    expect([await cashews.incr("n", expire=100) for _ in range(3)], [1, 2, 3])
    expect_in(await cashews.get_expire("n"), (99, 100))

    @cashews.rate_limit(limit=3, period=100, key="call")
    async def limited():
        return "called"

    expect([await limited() for _ in range(3)], ["called"] * 3)
    await expect_error(RateLimitError, limited())
    await cashews.delete_match("*")
    expect(await raw.dbsize(), 0)
    await cashews.close()


async def in_litestar(raw):
    store = RedisStore(redis.asyncio.Redis(unix_socket_path=path), handle_client_shutdown=True)
    await store.set("key", b"value", expires_in=10)
    expect(await store.get("key", renew_for=100), b"value")
    expect_in(await store.expires_in("key"), (99, 100))
    await store.set("kept", "text")
    expect(await store.get("kept", renew_for=100), b"text")
    expect(await raw.ttl("LITESTAR:kept"), -1)
    expect(await store.get("nothing", renew_for=100), None)
    other = store.with_namespace("other")
    await other.set("key", b"x")
    await other.delete_all()
    expect((await other.exists("key"), await store.exists("key")), (False, True))
    await store.delete_all()
    expect(await raw.dbsize(), 0)


def litestar_sessions():
    """Sends requests with a session in the store; each request renews the session."""

    @get("/count", sync_to_thread=False)
    def count(request: Request) -> str:
        request.session["visits"] = request.session.get("visits", 0) + 1
        return str(request.session["visits"])

    # with_client() supports only TCP.
    config = ServerSideSessionConfig(max_age=100, renew_on_access=True)
    stores = {"sessions": RedisStore(redis.asyncio.Redis(unix_socket_path=path), handle_client_shutdown=True)}
    app = Litestar(route_handlers=[count], middleware=[config.middleware], stores=stores)
    with LitestarClient(app) as ann:
        expect([ann.get("/count").text for _ in range(3)], ["1", "2", "3"])


def fastapi():
    @contextlib.asynccontextmanager
    async def lifespan(_):
        client = redis.asyncio.Redis(unix_socket_path=path)
        FastAPICache.init(RedisBackend(client), prefix="pages")
        yield
        await client.aclose()

    app, computed = FastAPI(lifespan=lifespan), []

    @app.get("/page")
    @fastapi_cached(expire=100, namespace="page")
    async def page():
        computed.append(1)
        return {"computed": len(computed)}

    @app.get("/clear")
    async def clear():
        await FastAPICache.clear(namespace="page")

    with TestClient(app) as client:
        expect([client.get("/page").json() for _ in range(3)], [{"computed": 1}] * 3)
        expect(client.get("/page").headers["x-fastapi-cache"], "HIT")
        expect(client.get("/clear").status_code, 200)
        expect(client.get("/page").json(), {"computed": 2})


async def main():
    raw = redis.asyncio.Redis(unix_socket_path=path)
    for library in (in_aiocache, in_cashews):
        await library(raw)
        await raw.flushall()
    await raw.aclose()


asyncio.run(main())
litestar_sessions()
fastapi()
redis.Redis(unix_socket_path=path).flushall()
all_is_well()
