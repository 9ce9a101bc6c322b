import LarderTestSupport
import Testing

/// Tests of Python frameworks that keep their cache, sessions, results, locks or rate limits in Redis, and need only
/// strings and scripts.
@Suite struct FrameworkTests {
    @Test(arguments: LiveServer.allCases) func djangoCachesAndStoresSessions(_ server: LiveServer) throws {
        try server.run { try ClientProgram.runPython("django_cache.py", [$0]) }
    }

    @Test(arguments: LiveServer.allCases) func flaskCachingWorksWithItsRedisBackend(_ server: LiveServer) throws {
        try server.run { try ClientProgram.runPython("flask_caching_app.py", [$0]) }
    }

    @Test(arguments: LiveServer.allCases) func dogpileCacheWorksWithItsRedisBackend(_ server: LiveServer) throws {
        try server.run { try ClientProgram.runPython("dogpile_regions.py", [$0]) }
    }

    @Test(arguments: LiveServer.allCases) func celeryStoresAndReturnsResults(_ server: LiveServer) throws {
        try server.run { try ClientProgram.runPython("celery_results.py", [$0]) }
    }

    /// django-redis uses scripts for its counters and its lock.
    @Test(arguments: LiveServer.allCases) func djangoRedisCanCacheCountAndLock(_ server: LiveServer) throws {
        try server.run { try ClientProgram.runPython("django_redis_cache.py", [$0]) }
    }

    @Test(arguments: LiveServer.allCases) func potteryRedlockLocks(_ server: LiveServer) throws {
        try server.run { try ClientProgram.runPython("pottery_redlock.py", [$0]) }
    }

    /// The libraries are aiocache, cashews, litestar and fastapi-cache2.
    @Test(arguments: LiveServer.allCases) func asyncioLibrariesCanLockAndStore(_ server: LiveServer) throws {
        try server.run { try ClientProgram.runPython("asyncio_locks.py", [$0]) }
    }

    /// The rate limiters are `limits`, Flask-Limiter and slowapi.
    @Test(arguments: LiveServer.allCases) func pythonRateLimitersCountAndRefuse(_ server: LiveServer) throws {
        try server.run { try ClientProgram.runPython("rate_limits.py", [$0]) }
    }
}
