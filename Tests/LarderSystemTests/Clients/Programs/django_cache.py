"""Django's own Redis cache, and sessions stored in it. Argument: the socket."""

import sys
import time

import django
from django.conf import settings
from expecting import all_is_well, expect, expect_error, expect_in, in_threads

path = sys.argv[1]
BACKEND = "django.core.cache.backends.redis.RedisCache"
settings.configure(
    SECRET_KEY="for the tests",
    CACHES={
        "default": {"BACKEND": BACKEND, "LOCATION": f"unix://{path}?db=0", "KEY_PREFIX": "site", "TIMEOUT": 300},
        "other": {"BACKEND": BACKEND, "LOCATION": f"unix://{path}?db=1", "TIMEOUT": None},
    },
    SESSION_ENGINE="django.contrib.sessions.backends.cache",
    SESSION_COOKIE_AGE=1000,
    MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware"],
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["*"],
    USE_TZ=True,
)
django.setup()

from django.core.cache import cache, caches  # noqa: E402: Django wants its settings first
from django.http import HttpResponse  # noqa: E402
from django.test import Client  # noqa: E402
from django.urls import path as url  # noqa: E402
from django.views.decorators.cache import cache_page  # noqa: E402

other = caches["other"]
raw = cache._cache.get_client()

# Values of all kinds, and their form in the cache.
model = {"title": "一本书", "pages": 321, "tags": ("x", "y"), "none": None}
cache.set("model", model)
expect(cache.get("model"), model)
expect_in(raw.ttl("site:1:model"), (299, 300))
expect(cache.get("nothing", "default"), "default")
cache.set("none", None)
expect(cache.get("none", "default"), None)
cache.set("number", 41)
expect(raw.get("site:1:number"), b"41")
expect(cache.incr("number"), 42)
expect(cache.decr("number", 2), 40)
expect_error(ValueError, "Key 'site:1:nothing' not found", cache.incr, "nothing")
expect(cache.add("number", 1), False)
expect(cache.add("fresh", 1), True)
expect(cache.get_or_set("fresh", 2), 1)
expect(cache.get_or_set("made", lambda: "computed"), "computed")
expect(cache.has_key("made"), True)
expect("unmade" in cache, False)
expect(cache.delete("made"), True)
expect(cache.delete("made"), False)

# Expiry.
cache.set("short", "x", timeout=1000)
expect_in(raw.ttl("site:1:short"), (999, 1000))
expect(cache.touch("short", 5000), True)
expect_in(raw.ttl("site:1:short"), (4999, 5000))
expect(cache.touch("short", None), True)
expect(raw.ttl("site:1:short"), -1)
expect(cache.touch("nothing", 10), False)
cache.set("over", "x", timeout=0)
expect(cache.get("over"), None)
other.set("kept", "x")
expect(other._cache.get_client().ttl(":1:kept"), -1)
cache.set("soon", "x", timeout=1)
deadline = time.monotonic() + 60
while cache.get("soon") is not None:
    expect(time.monotonic() < deadline, True)

# Several keys in one call.
many = {f"many {number}": number * number for number in range(1000)}
expect(cache.set_many(many, timeout=60), [])
expect(cache.get_many(list(many) + ["nothing"]), many)
expect_in(raw.ttl("site:1:many 7"), (59, 60))
cache.delete_many(list(many)[:500])
expect(len(cache.get_many(many)), 500)

# Versions.
cache.set("versioned", "old", version=1)
expect(cache.incr_version("versioned"), 2)
expect((cache.get("versioned"), cache.get("versioned", version=2)), (None, "old"))


# Threads.
def work(number):
    for step in range(100):
        cache.set(f"thread {number}", step)
        expect(cache.get(f"thread {number}"), step)
        cache.incr("number")


in_threads(8, work)
expect(cache.get("number"), 840)


# Requests with sessions and a cached page.
computed = []


def count(request):
    request.session["visits"] = request.session.get("visits", 0) + 1
    return HttpResponse(str(request.session["visits"]))


def leave(request):
    request.session.flush()
    return HttpResponse("bye")


@cache_page(60)
def page(request):
    computed.append(request.path)
    return HttpResponse(f"computed {len(computed)} times")


urlpatterns = [url("count", count), url("leave", leave), url("page", page)]
ann, bob = Client(), Client()
expect([ann.get("/count").content for _ in range(3)], [b"1", b"2", b"3"])
expect(bob.get("/count").content, b"1")
key = "site:1:django.contrib.sessions.cache" + ann.cookies["sessionid"].value
expect_in(raw.ttl(key), (999, 1000))
expect(ann.get("/leave").content, b"bye")
expect(raw.exists(key), 0)
expect(ann.get("/count").content, b"1")
expect(bob.get("/count").content, b"2")
expect([ann.get("/page").content for _ in range(3)], [b"computed 1 times"] * 3)
expect(computed, ["/page"])

# Clearing one cache does not affect the other.
cache.clear()
expect(cache.get("model"), None)
expect(bob.get("/count").content, b"1")
expect(other.get("kept"), "x")
other.clear()
all_is_well()
