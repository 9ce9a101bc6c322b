import CLarderLevelDB
import LarderPlatform

/// The machine and the versions of the measured programs. The report includes them: figures are only comparable on one
/// machine.
enum Machine {
    static func facts(_ options: BenchOptions, _ tree: TemporaryTree) -> [(String, String)] {
        [
            ("processor", "\(processor), \(sysconf(Int32(_SC_NPROCESSORS_ONLN))) online"),
            ("memory", memory),
            ("system", system),
            ("disk", fileSystem(tree.path)),
            ("load before", loadAverage),
            ("commit", commit),
            ("build", build),
            ("LevelDB", "\(leveldb_major_version()).\(leveldb_minor_version())"),
            ("larderd", firstLine([options.larderd, "--version"], tree)),
            ("redis-server", firstLine([options.redisServer, "--version"], tree)),
            ("valkey-server", firstLine([options.valkeyServer, "--version"], tree)),
            ("memcached", firstLine([options.memcached, "--version"], tree)),
            ("SQLite", sqliteVersion),
            ("diskcache", Diskcache.version(options, tree)),
            ("redis-benchmark", firstLine([options.redisBenchmark, "--version"], tree)),
            ("rounds", "\(options.roundCount), about \(Decimal.text(options.secondsPerRun, digits: 2)) s per run"),
            (
                "simulations",
                "a day of churn and an hour of disk-bytes, each in "
                    + "\(Decimal.text(options.secondsPerSimulation, digits: 0)) s"
            ),
            (
                "counters",
                EventCounters.absence.map { "no instructions and cycles: \($0)" }
                    ?? "instructions and cycles, user and system"
            ),
            ("embedded stores", StoreOptions.summary),
            (
                "redis and valkey",
                "no TCP, no snapshots, append-only file not rewritten, one thread, as noted per row; jemalloc"
            ),
            ("memcached settings", "one thread, 4 GiB, no persistence (it has none)"),
            (
                "larderd settings",
                "one event loop, memory tier of the default size (a 16th of memory), policy never; as noted per row"
            ),
            ("null server", "libuv, one loop, counts bytes and sends fixed answers: the floor for any server on libuv"),
        ]
    }

    private static var sqliteVersion: String {
        switch SQLiteLibrary.shared {
        case .success(let library): library.version
        case .failure(let error): error.description
        }
    }

    private static var build: String {
        #if DEBUG
            "debug: the figures of Larder's code are meaningless"
        #else
            "release"
        #endif
    }

    private static var processor: String {
        let lines = (TextFile.read("/proc/cpuinfo") ?? "").split(separator: "\n")
        let line = lines.first { $0.hasPrefix("model name") }
        guard let name = line?.split(separator: ":").last else { return "unknown" }
        return String(name.drop { $0 == " " })
    }

    private static var memory: String {
        Decimal.text(Double(MachineMemory.bytes) / 1_073_741_824, digits: 1) + " GiB"
    }

    private static var system: String {
        var name = utsname()
        guard uname(&name) == 0 else { return "unknown" }
        func text<Field>(_ field: Field) -> String {
            withUnsafeBytes(of: field) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        }
        return "\(text(name.sysname)) \(text(name.release)) \(text(name.machine))"
    }

    static var loadAverage: String {
        let text = TextFile.read("/proc/loadavg") ?? ""
        let numbers = text.split(separator: " ").prefix(3).joined(separator: " ")
        return numbers.isEmpty ? "unknown" : numbers
    }

    /// The type of the file system with the measured files. If it is in memory, an fsync costs nothing.
    private static func fileSystem(_ path: String) -> String {
        var best = (mount: "", type: "unknown")
        for line in (TextFile.read("/proc/self/mounts") ?? "").split(separator: "\n") {
            let fields = line.split(separator: " ")
            guard fields.count > 2 else { continue }
            let mount = String(fields[1])
            let isAbove = mount == "/" || path == mount || path.hasPrefix(mount + "/")
            if isAbove, mount.utf8.count >= best.mount.utf8.count { best = (mount, String(fields[2])) }
        }
        let warning = best.type == "tmpfs" ? " (IN MEMORY: figures with fsync are meaningless)" : ""
        return "\(best.type) at \(best.mount)\(warning)"
    }

    /// The commit of the current working tree, if there is one.
    private static var commit: String {
        guard let head = TextFile.read(".git/HEAD")?.split(separator: "\n").first.map(String.init) else {
            return "unknown (not run in the source tree)"
        }
        guard head.hasPrefix("ref: ") else { return String(head.prefix(12)) }
        let reference = head.dropFirst(5)
        guard let hash = TextFile.read(".git/\(reference)") else { return String(reference) }
        return String(hash.prefix(12))
    }

    private static func firstLine(_ words: [String], _ tree: TemporaryTree) -> String {
        guard let process = try? ChildProcess(words, outputPath: tree.path + "/version"), process.wait() == .exited(0)
        else {
            return "not found (\(words[0]))"
        }
        return process.output.split(separator: "\n").first.map(String.init) ?? "unknown"
    }
}
