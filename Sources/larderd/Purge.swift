import LarderClient
import LarderEngine
import LarderPlatform
import LarderServer

/// `larderd --purge`: removes entries. Works on the files itself, or through the daemon that has the larder open.
enum Purge {
    static func run(_ target: DaemonCommandLine.PurgeTarget, _ options: DaemonCommandLine) -> Int32 {
        guard FileSystem.isDirectory(options.configuration.directory) else {
            Daemon.complain("there is no larder at \(options.configuration.directory): nothing to purge (--dir)")
            return ExitCode.noDatabase
        }
        // Do not open a directory with other files: that would create a larder in it.
        let names = try? FileSystem.list(options.configuration.directory)
        if names?.isEmpty == false, !Engine.isLarder(options.configuration.directory) {
            return purge(target, []) { _ in PurgeReport() }
        }
        var engineOptions = options.configuration.engine
        engineOptions.backgroundMaintenance = false
        do throws(LarderError) {
            let engine = try Engine.open(options.configuration.directory, options: engineOptions)
            defer { engine.shutdown() }
            return purge(target, engine.databases.map(\.name)) { name in
                guard let database = engine.databases.first(where: { $0.name == name }) else { return PurgeReport() }
                return try target == .expired ? database.purge(.expired(merges: true)) : database.purge()
            }
        } catch {
            guard error.code == .larderHeld else {
                Daemon.complain(error.description)
                return ExitCode.failed
            }
            guard let socket = Engine.holder(of: options.configuration.directory)?.socket else {
                Daemon.complain(error.description)
                return ExitCode.held
            }
            return purge(target, through: socket, options.configuration)
        }
    }

    /// Purges databases, and prints the results.
    /// - Parameters:
    ///   - names: all databases of the larder.
    ///   - body: purges the database with a name.
    private static func purge(
        _ target: DaemonCommandLine.PurgeTarget, _ names: [String], _ body: (String) throws -> PurgeReport
    ) -> Int32 {
        var names = names
        if case .database(let name) = target {
            guard names.contains(name) else {
                Daemon.complain("there is no database '\(name)'")
                return ExitCode.noDatabase
            }
            names = [name]
        }
        if names.isEmpty { Output.write("the larder has no databases: nothing to purge\n") }
        var code = ExitCode.done
        for name in names {
            do {
                let result = try body(name)
                Output.write(
                    "purged database '\(name)': \(counted(result.entries ?? 0, "entry", "entries")), "
                        + "\(counted(result.bytes, "byte")), \(result.milliseconds) ms\n")
            } catch {
                Daemon.complain("\(error)")
                code = ExitCode.failed
            }
        }
        return code
    }

    /// Purges databases of a running daemon.
    private static func purge(
        _ target: DaemonCommandLine.PurgeTarget, through socket: String, _ configuration: ServerConfiguration
    ) -> Int32 {
        let directory = configuration.directory
        do throws(LarderClientError) {
            func connect(timeoutMilliseconds: Int) throws(LarderClientError) -> BlockingLarderClient {
                try BlockingLarderClient(
                    socketPath: socket, password: configuration.password.map { String(decoding: $0, as: UTF8.self) },
                    timeoutMilliseconds: timeoutMilliseconds, trustedUsers: owner(of: directory))
            }
            // A stopped daemon is reported soon, but a purge may wait for a checkpoint.
            _ = try connect(timeoutMilliseconds: 5_000)
            let client = try connect(timeoutMilliseconds: 300_000)
            guard try serves(directory, client) else {
                Daemon.complain("the daemon at \(socket) does not serve the larder \(directory): nothing was purged")
                return ExitCode.held
            }
            return purge(target, try client.databases().map(\.name)) { name in
                try client.select(name)
                return try target == .expired ? client.removeExpired() : client.removeAll()
            }
        } catch {
            let reason =
                switch error.serverText?.prefix(while: { $0 != " " }) {
                case "NOAUTH": "needs a password: use --password-file"
                case "WRONGPASS": "refuses the password of --password-file"
                default: [.noDaemon, .timeout].contains(error.code) ? "does not answer" : "cannot purge: \(error)"
                }
            Daemon.complain("the daemon at \(socket), which has the larder open, \(reason)")
            return ExitCode.failed
        }
    }

    /// The owner of the larder, whose daemon is trusted.
    private static func owner(of directory: String) -> Set<uid_t> {
        var status = stat()
        return stat(directory, &status) == 0 ? [status.st_uid] : []
    }

    /// Whether the daemon has this larder open. Check this first, because the purge of another larder could not be
    /// undone.
    private static func serves(_ directory: String, _ client: BlockingLarderClient) throws(LarderClientError) -> Bool {
        let path = FileSystem.canonical(directory) ?? directory
        return try client.serverInfo(section: "larder").split(separator: "\r\n").contains("directory:\(path)")
    }
}
