import LarderTestSupport
import Testing

/// Tests of clients in other languages than Python, and of frameworks that use them: C, JavaScript, PHP, Ruby, Perl.
@Suite struct OtherClientTests {
    @Test(arguments: LiveServer.allCases) func hiredis(_ server: LiveServer) throws {
        try ClientProgram.require("gcc", package: "gcc")
        let directory = try TemporaryDirectory()
        let program = directory.path + "/hiredis"
        let (end, _, errors) = try ChildProcess.run(
            "gcc",
            ["-Wall", "-Werror", "-O1", ClientProgram.directory + "/hiredis.c", "-lhiredis", "-o", program])
        try #require(end == .exited(0), "`make test` installs Debian's package libhiredis-dev: \(errors)")
        try server.run { try ClientProgram.run(nil, program, [$0]) }
    }

    @Test(arguments: LiveServer.allCases, ["node_redis.js", "node_scripts.js"])
    func nodeRedis(_ server: LiveServer, _ program: String) throws {
        try ClientProgram.require("node", package: "nodejs")
        // The directory of Debian's package node-redis. A node from another source does not search it.
        try server.run {
            try ClientProgram.run("node", program, [$0], environment: ["NODE_PATH=/usr/share/nodejs"])
        }
    }

    @Test(arguments: LiveServer.allCases) func phpRedis(_ server: LiveServer) throws {
        try ClientProgram.require("php", package: "php-cli")
        try server.run { try ClientProgram.run("php", "php_redis.php", [$0]) }
    }

    /// Two concurrent requests use one session: with `redis.session.locking_enabled`, neither update is lost.
    @Test(arguments: LiveServer.allCases) func phpSessionsWithLocks(_ server: LiveServer) throws {
        try ClientProgram.require("php", package: "php-cli")
        try server.run { try ClientProgram.run("php", "php_sessions.php", [$0]) }
    }

    @Test(arguments: LiveServer.allCases) func laravelAndSymfony(_ server: LiveServer) throws {
        try ClientProgram.require("php", package: "php-cli")
        try server.run { try ClientProgram.run("php", "php_frameworks.php", [$0]) }
    }

    @Test(arguments: LiveServer.allCases) func rubyRedis(_ server: LiveServer) throws {
        try ClientProgram.require("ruby", package: "ruby")
        try server.run { try ClientProgram.run("ruby", "ruby_redis.rb", [$0]) }
    }

    @Test(arguments: LiveServer.allCases) func railsAndRedlock(_ server: LiveServer) throws {
        try ClientProgram.require("ruby", package: "ruby")
        try server.run { try ClientProgram.run("ruby", "ruby_frameworks.rb", [$0]) }
    }

    @Test(arguments: LiveServer.allCases) func perlRedis(_ server: LiveServer) throws {
        try ClientProgram.require("perl", package: "perl")
        try server.run { try ClientProgram.run("perl", "perl_redis.pl", [$0]) }
    }
}
