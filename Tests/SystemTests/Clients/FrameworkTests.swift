import TestSupport
import Testing

/// Frameworks in Python that keep their cache, sessions or results in Redis and need only strings.
@Suite struct FrameworkTests {
    @Test(arguments: LiveServer.allCases) func djangoCacheAndSessions(_ server: LiveServer) throws {
        try server.run { try ClientProgram.runPython("django_cache.py", [$0]) }
    }

    @Test(arguments: LiveServer.allCases) func flaskCaching(_ server: LiveServer) throws {
        try server.run { try ClientProgram.runPython("flask_caching_app.py", [$0]) }
    }

    @Test(arguments: LiveServer.allCases) func dogpileCache(_ server: LiveServer) throws {
        try server.run { try ClientProgram.runPython("dogpile_regions.py", [$0]) }
    }

    @Test(arguments: LiveServer.allCases) func celeryResults(_ server: LiveServer) throws {
        try server.run { try ClientProgram.runPython("celery_results.py", [$0]) }
    }
}
