import LarderEngine
import LarderPlatform
import LarderRESP
import LarderServer

/// `larderd --purge`: removes entries. Works on the files itself, or through the daemon that has the larder open.
enum Purge {
    static func run(_ target: DaemonCommandLine.PurgeTarget, _ options: DaemonCommandLine) -> Int32 {
        guard FileSystem.isDirectory(options.configuration.directory) else {
            Daemon.complain("there is no larder at \(options.configuration.directory): nothing to purge (--dir)")
            return ExitCode.noDatabase
        }
        var engineOptions = options.configuration.engine
        engineOptions.backgroundMaintenance = false
        do throws(LarderError) {
            let engine = try Engine.open(options.configuration.directory, options: engineOptions)
            defer { engine.shutdown() }
            return purgeFiles(target, engine)
        } catch {
            guard error.code == .larderHeld else {
                Daemon.complain(error.description)
                return ExitCode.failed
            }
            guard let socket = Engine.holder(of: options.configuration.directory)?.socket else {
                Daemon.complain(error.description)
                return ExitCode.held
            }
            let directory = options.configuration.directory
            let client = AdminClient(
                socketPath: socket, password: options.configuration.password, directory: directory)
            return purge(target, through: client, directory, socket)
        }
    }

    private static func report(_ name: String, _ entries: Int, _ bytes: Int, _ milliseconds: Int64) {
        Output.write(
            "purged database '\(name)': \(counted(entries, "entry", "entries")), \(counted(bytes, "byte")), "
                + "\(milliseconds) ms\n")
    }

    private static func noDatabase(_ name: String) -> Int32 {
        Daemon.complain("there is no database '\(name)'")
        return ExitCode.noDatabase
    }

    // MARK: With the daemon stopped

    private static func purgeFiles(_ target: DaemonCommandLine.PurgeTarget, _ engine: Engine) -> Int32 {
        var databases = engine.databases
        if case .database(let name) = target {
            databases = databases.filter { $0.name == name }
            if databases.isEmpty { return noDatabase(name) }
        }
        if databases.isEmpty { Output.write("the larder has no databases: nothing to purge\n") }
        var code = ExitCode.done
        for database in databases {
            do throws(LarderError) {
                let result = target == .expired ? try database.purge(.expired(merges: true)) : try database.purge()
                report(database.name, result.entries ?? 0, result.bytes, result.milliseconds)
            } catch {
                Daemon.complain(error.description)
                code = ExitCode.failed
            }
        }
        return code
    }

    // MARK: With the daemon running

    private static func purge(
        _ target: DaemonCommandLine.PurgeTarget, through client: AdminClient, _ directory: String, _ socket: String
    ) -> Int32 {
        do throws(AdminClient.Failure) {
            guard try serves(directory, client) else {
                Daemon.complain("the daemon at \(socket) does not serve the larder \(directory): nothing was purged")
                return ExitCode.held
            }
            var names = try databaseNames(client)
            if case .database(let name) = target {
                names = names.filter { $0 == name }
                if names.isEmpty { return noDatabase(name) }
            }
            if names.isEmpty { Output.write("the larder has no databases: nothing to purge\n") }
            var code = ExitCode.done
            for name in names {
                let purge = target == .expired ? ["PURGE", "EXPIRED"] : ["PURGE"]
                let replies = try client.request([["HELLO", "3"], ["SELECT", name], purge])
                code = show(name, replies) ?? code
            }
            return code
        } catch {
            Daemon.complain(error.description)
            return ExitCode.failed
        }
    }

    /// Whether the daemon has this larder open. Check this first, because the purge of another larder could not be
    /// undone.
    private static func serves(_ directory: String, _ client: AdminClient) throws(AdminClient.Failure) -> Bool {
        let reply = try client.request([["INFO", "larder"]]).first
        let path = FileSystem.canonical(directory) ?? directory
        return reply?.string?.split(separator: "\r\n").contains("directory:\(path)") == true
    }

    private static func databaseNames(_ client: AdminClient) throws(AdminClient.Failure) -> [String] {
        let replies = try client.request([["HELLO", "3"], ["DATABASES"]])
        guard let list = replies.last, list.errorMessage == nil else {
            throw AdminClient.Failure(
                "the daemon does not list its databases: \(replies.last?.errorMessage ?? "no answer")")
        }
        return (list.elements ?? []).compactMap { field($0, "name")?.string }
    }

    private static func field(_ map: RESPValue, _ name: String) -> RESPValue? {
        map.pairs?.first { $0.key.string == name }?.value
    }

    /// Prints the result of a purge.
    /// - Returns: an exit code if the purge failed; nil otherwise.
    private static func show(_ name: String, _ replies: [RESPValue]) -> Int32? {
        for reply in replies {
            if let error = reply.errorMessage {
                Daemon.complain(error)
                return ExitCode.failed
            }
        }
        guard let result = replies.last, let entries = field(result, "entries")?.int,
            let bytes = field(result, "bytes")?.int, let milliseconds = field(result, "milliseconds")?.int
        else {
            Daemon.complain("the daemon's reply is malformed")
            return ExitCode.failed
        }
        report(name, Int(entries), Int(bytes), milliseconds)
        return nil
    }
}
