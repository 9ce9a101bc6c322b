/// A server that is measured: which program, with which settings.
struct Contender {
    enum Program { case larderd, redis }

    let name: String
    let program: Program
    let settings: [String]

    private static func larderd(
        _ durability: String, _ policy: String?, _ note: String? = nil, _ more: [String] = []
    ) -> Contender {
        Contender(
            name: "larderd \(durability), \(policy ?? "default policy")" + (note.map { ", \($0)" } ?? ""),
            program: .larderd,
            settings: ["--durability", durability] + (policy.map { ["--policy", $0] } ?? []) + more)
    }

    static let larderOS = larderd("os", "never")
    static let larderEverySecond = larderd("everysecond", "never")
    static let larderDefault = larderd("everysecond", nil)
    static let larderAlways = larderd("always", "never")
    static let larderCold = larderd("everysecond", "never", "no memory tier", ["--memory", "0"])
    static let larderThreads = larderd("everysecond", "never", "4 threads", ["--threads", "4"])

    private static func redis(_ name: String, _ settings: [String]) -> Contender {
        Contender(name: "redis \(name)", program: .redis, settings: settings)
    }

    static let redisOff = redis("no persistence", ["--appendonly", "no"])
    static let redisEverySecond = redis("AOF everysec", ["--appendonly", "yes", "--appendfsync", "everysec"])
    static let redisAlways = redis("AOF always", ["--appendonly", "yes", "--appendfsync", "always"])

    /// The command line for a data directory and a socket.
    func words(_ options: BenchOptions, directory: String, socket: String) -> [String] {
        switch program {
        case .larderd:
            [options.larderd, "--dir", directory, "--socket", socket, "--log-level", "warning"] + settings
        case .redis:
            // No TCP port and no snapshots; the append-only file is never rewritten, because a rewriting child's
            // processor time would depend on when it happens to start.
            [
                options.redisServer, "--port", "0", "--unixsocket", socket, "--dir", directory, "--save", "",
                "--daemonize", "no", "--loglevel", "warning", "--auto-aof-rewrite-percentage", "0",
            ] + settings
        }
    }
}
