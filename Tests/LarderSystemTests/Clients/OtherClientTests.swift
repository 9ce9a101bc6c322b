import LarderTestSupport
import Testing

/// Tests of clients in other languages than Python, and of frameworks that use them: C, JavaScript, PHP, Ruby, Perl.
@Suite struct OtherClientTests {
    @Test("the C client hiredis works", arguments: LiveServer.allCases) func hiredisWorks(_ server: LiveServer) throws {
        try ClientProgram.require("gcc", package: "gcc")
        let directory = try TemporaryDirectory()
        let program = directory.path + "/hiredis"
        let (end, _, errors) = try ChildProcess.run(
            "gcc",
            ["-Wall", "-Werror", "-O1", ClientProgram.directory + "/hiredis.c", "-lhiredis", "-o", program])
        try #require(end == .exited(0), "`make test` installs Debian's package libhiredis-dev: \(errors)")
        try server.run { try ClientProgram.run(nil, program, [$0]) }
    }

    @Test(
        "the JavaScript client node-redis works",
        arguments: LiveServer.allCases, ["node_redis.js", "node_scripts.js"])
    func nodeRedisWorks(_ server: LiveServer, _ program: String) throws {
        try ClientProgram.require("node", package: "nodejs")
        // The directory of Debian's package node-redis. A node from another source does not search it.
        try server.run {
            try ClientProgram.run("node", program, [$0], environment: ["NODE_PATH=/usr/share/nodejs"])
        }
    }

    @Test("the PHP client phpredis works", arguments: LiveServer.allCases)
    func phpRedisWorks(_ server: LiveServer) throws {
        try ClientProgram.require("php", package: "php-cli")
        try server.run { try ClientProgram.run("php", "php_redis.php", [$0]) }
    }

    /// Two concurrent requests use one session: with `redis.session.locking_enabled`, neither update is lost.
    @Test(arguments: LiveServer.allCases) func concurrentPHPRequestsLoseNoSessionUpdate(_ server: LiveServer) throws {
        try ClientProgram.require("php", package: "php-cli")
        try server.run { try ClientProgram.run("php", "php_sessions.php", [$0]) }
    }

    @Test("the caches of Laravel and Symfony work", arguments: LiveServer.allCases)
    func laravelAndSymfonyWork(_ server: LiveServer) throws {
        try ClientProgram.require("php", package: "php-cli")
        try server.run { try ClientProgram.run("php", "php_frameworks.php", [$0]) }
    }

    @Test("the commands of WordPress and Nextcloud work", arguments: LiveServer.allCases)
    func wordPressAndNextcloudWork(_ server: LiveServer) throws {
        try ClientProgram.require("php", package: "php-cli")
        try server.run { try ClientProgram.run("php", "php_applications.php", [$0]) }
    }

    @Test("the Ruby client redis-rb works", arguments: LiveServer.allCases)
    func rubyRedisWorks(_ server: LiveServer) throws {
        try ClientProgram.require("ruby", package: "ruby")
        try server.run { try ClientProgram.run("ruby", "ruby_redis.rb", [$0]) }
    }

    @Test("the cache of Rails and Ruby's redlock work", arguments: LiveServer.allCases)
    func railsAndRedlockWork(_ server: LiveServer) throws {
        try ClientProgram.require("ruby", package: "ruby")
        try server.run { try ClientProgram.run("ruby", "ruby_frameworks.rb", [$0]) }
    }

    @Test("the Perl client Redis works", arguments: LiveServer.allCases)
    func perlRedisWorks(_ server: LiveServer) throws {
        try ClientProgram.require("perl", package: "perl")
        try server.run { try ClientProgram.run("perl", "perl_redis.pl", [$0]) }
    }
}
