import LarderPlatform

/// A server to measure: its program and its settings.
struct Contender {
    enum Program { case larderd, redis, valkey, memcached, null }

    let name: String
    let program: Program
    let settings: [String]
    /// Words added to each SET that fills the server, such as tags.
    var fillWords: [String] = []

    var dialect: Dialect {
        switch program {
        case .larderd, .redis, .valkey: .resp
        case .memcached: .memcached
        case .null: .null
        }
    }

    private static func larderd(_ durability: String, _ note: String? = nil, _ more: [String] = []) -> Contender {
        let policy = more.contains("--policy") ? [] : ["--policy", "never"]
        return Contender(
            name: "larderd \(durability)" + (note.map { ", \($0)" } ?? ""), program: .larderd,
            settings: ["--durability", durability] + policy + more)
    }

    static let larderOS = larderd("os")
    static let larderEverySecond = larderd("everysecond")
    static let larderAlways = larderd("always")
    static let larderDefault = larderd("everysecond", "entries expire after 7 days", ["--policy", "lowest"])
    static let larderCold = larderd("everysecond", "no memory tier", ["--memory", "0"])
    static let larderThreads = larderd("everysecond", "4 threads", ["--threads", "4"])

    /// larderd with two tags per entry, after a purge of another tag.
    static var larderTags: Contender {
        var contender = larderd("everysecond", "entries with tags")
        contender.fillWords = ["TAGS", "2", "article:17", "page"]
        return contender
    }

    static func larder(memory: String) -> Contender {
        larderd("everysecond", "\(memory)iB memory tier", ["--memory", memory])
    }

    /// The same server with more settings.
    /// - Parameter note: added to the name.
    func with(_ note: String?, _ settings: [String]) -> Contender {
        Contender(
            name: name + (note.map { ", \($0)" } ?? ""), program: program, settings: self.settings + settings,
            fillWords: fillWords)
    }

    private static func redis(_ name: String, _ settings: [String]) -> Contender {
        Contender(name: "redis \(name)", program: .redis, settings: settings)
    }

    static let redisOff = redis("no persistence", ["--appendonly", "no"])
    static let redisEverySecond = redis("AOF everysec", ["--appendonly", "yes", "--appendfsync", "everysec"])
    static let redisAlways = redis("AOF always", ["--appendonly", "yes", "--appendfsync", "always"])

    /// Valkey with the settings of a redis-server.
    private static func valkey(like redis: Contender) -> Contender {
        Contender(name: redis.name.replacing("redis", with: "valkey"), program: .valkey, settings: redis.settings)
    }

    static let valkeyOff = valkey(like: redisOff)
    static let valkeyEverySecond = valkey(like: redisEverySecond)
    static let valkeyAlways = valkey(like: redisAlways)

    /// The servers that lose at most the last second after a crash.
    static let journaling: [Contender] = [larderEverySecond, redisEverySecond, valkeyEverySecond]

    /// A node of a cluster, which also listens on a port of 127.0.0.1.
    static func clusterNode(port: Int) -> Contender {
        redis(
            "cluster node",
            ["--port", "\(port)", "--bind", "127.0.0.1", "--cluster-enabled", "yes", "--appendonly", "no"])
    }

    static let memcached = Contender(name: "memcached", program: .memcached, settings: ["-t", "1", "-m", "4096"])
    static let null = Contender(name: "null server", program: .null, settings: [])

    /// The command line for a data directory and a socket.
    func words(_ options: BenchOptions, directory: String, socket: String) -> [String] {
        switch program {
        case .larderd:
            return [options.larderd, "--dir", directory, "--socket", socket, "--log-level", "warning"] + settings
        case .redis, .valkey:
            // No TCP port and no snapshots. The append-only file is never rewritten: the time of a rewrite would be
            // random, and would change the CPU time.
            return [
                program == .valkey ? options.valkeyServer : options.redisServer, "--port", "0",
                "--unixsocket", socket, "--dir", directory, "--save", "",
                "--daemonize", "no", "--loglevel", "warning", "--auto-aof-rewrite-percentage", "0",
            ] + settings
        case .memcached:
            // memcached refuses to run as root without `-u`.
            return [options.memcached, "-s", socket, "-a", "0600", "-U", "0"] + settings
                + (getuid() == 0 ? ["-u", "root"] : [])
        case .null: return [options.program, "--null-server", socket]
        }
    }
}
