import TestSupport
import Testing

/// Frameworks in Python that keep their cache, sessions or results in Redis and need only strings.
@Suite struct FrameworkTests {
    @Test(arguments: ScriptedServer.all) func djangoCacheAndSessions(_ server: ScriptedServer) throws {
        try server.run { try ClientProgram.runPython("django_cache.py", [$0]) }
    }

    @Test(arguments: ScriptedServer.all) func flaskCaching(_ server: ScriptedServer) throws {
        try server.run { try ClientProgram.runPython("flask_caching_app.py", [$0]) }
    }

    @Test(arguments: ScriptedServer.all) func dogpileCache(_ server: ScriptedServer) throws {
        try server.run { try ClientProgram.runPython("dogpile_regions.py", [$0]) }
    }

    @Test(arguments: ScriptedServer.all) func celeryResults(_ server: ScriptedServer) throws {
        try server.run { try ClientProgram.runPython("celery_results.py", [$0]) }
    }
}
