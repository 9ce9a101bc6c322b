import LarderClient
import LarderPlatform
import LarderServices
import LarderVocabulary

/// The program larderweb: parses its command line, then serves.
enum WebProgram {
    static var help: String {
        """
        larderweb \(Version.text): \(summary).

        usage: larderweb [options]

        \(WebOption.helpLines(WebOptions.table.rows, column: 22).joined(separator: "\n"))

        Any client that can connect can read all keys and values of the daemon. On 127.0.0.1, these are all users of
        this machine: use --token-file or --listen unix:/path to prevent that.

        \(signals)

        exit codes:
        \(ExitCode.all.map { "  \($0.code)  \($0.meaning)" }.joined(separator: "\n"))

        """
    }

    static let signals = "SIGTERM, SIGINT and SIGHUP stop it; SIGUSR1 and SIGUSR2 are ignored."

    /// - Returns: the exit code.
    static func main(_ words: [String]) -> Int32 {
        guard StandardDescriptors.fill() else { return ExitCode.failed }
        if let complaint = Program.commandLineComplaint {
            complain(complaint)
            return ExitCode.usage
        }
        let service = ServiceManager.take()
        for number in [SIGPIPE, SIGUSR1, SIGUSR2] { signal(number, SIG_IGN) }
        let options: WebOptions
        do throws(UsageError) { options = try WebOptions(words) } catch {
            service?.fail(error.message)
            complain("\(error.message)\nTry: larderweb --help")
            return ExitCode.usage
        }
        guard let output = options.output else { return serve(options, service) }
        do throws(FileError) {
            try FileSystem.writeAll(Array(output.utf8), descriptor: STDOUT_FILENO, path: "standard output")
            return ExitCode.done
        } catch {
            complain("\(error)")
            return ExitCode.failed
        }
    }

    private static func complain(_ text: String) {
        let lines = text.split(separator: "\n").map { "larderweb: \(LogFormat.clean(String($0)))\n" }
        let bytes = Array(lines.joined().utf8)
        _ = systemWrite(STDERR_FILENO, bytes, bytes.count)
    }

    // MARK: Serving

    private static func serve(_ options: WebOptions, _ service: ServiceManager?) -> Int32 {
        // Block the signals before other threads start, so that only this thread receives them.
        // The parent process may have set signals to be ignored; only SIGHUP then stays so.
        for number in [SIGTERM, SIGINT] { signal(number, SIG_DFL) }
        let signals = SignalSet([SIGTERM, SIGINT, SIGHUP])
        signals.block()
        let log = Log(least: options.logLevel, format: options.logFormat)
        defer { log.flush() }
        func fail(_ text: String, _ code: Int32) -> Int32 {
            log.error(text)
            service?.fail(text)
            return code
        }
        for warning in PasswordFile.warnings(options.passwordPath, program: "larderweb") { log.warning(warning) }
        let socket: WebSocket
        do throws(SocketFile.Failure) {
            socket = try WebSocket(options.listen, options.socketAccess)
        } catch {
            return fail(error.description, error.kind == .taken ? ExitCode.taken : ExitCode.failed)
        }
        func link(isUnlogged: Bool) -> DaemonLink {
            DaemonLink(
                socketPath: options.socketPath, password: options.password, trustedUsers: options.trustedUsers,
                isUnlogged: isUnlogged)
        }
        let collector = Collector(link(isUnlogged: false), polling: link(isUnlogged: true))
        let access = AccessRules(hosts: options.hosts.union(socket.host.map { [$0] } ?? []), token: options.token, log)
        let place = HistoryStore.Place(
            directory: options.historyDirectory, daemon: options.socketPath ?? LarderClient.defaultSocketPath)
        let keepsHistory = options.keepsHistory && hasPlaceForHistory(options, log)
        let history = History(collector, keepsHistory ? place : nil, log)
        let router = Router(collector, access, history, allowsChanges: options.allowsChanges)
        var limits = options.limits
        limits.connections = descriptorsAllow(limits.connections, log)
        let most = limits.connections
        let server = HTTPServer(
            limits: limits,
            reportFull: {
                log.warning(
                    "more than \(most) open connections (--max-connections): closing those that have been without a "
                        + "complete request for the longest time")
            },
            respond: { router.respond($0) })
        guard server.start(socket.descriptor) else { return fail("cannot start a thread", ExitCode.failed) }
        if options.token == nil, case .network = options.listen {
            log.warning(
                "all users of this machine can read all keys and values: use --token-file or --listen unix: to prevent that"
            )
        }
        let change = options.allowsChanges ? " and allows changes" : ""
        log.info("larderweb \(Version.text) serves \(socket.name)\(change)")
        service?.ready("serving \(socket.name)")
        history.start()
        var ending: Int32?
        while ending == nil {
            service?.tick(now: MonotonicClock.milliseconds(), isAlive: true)
            server.closeSlowConnections()
            ending = signals.wait(milliseconds: min(1000, limits.requestMilliseconds))
        }
        let name = ending == SIGTERM ? "SIGTERM" : ending == SIGINT ? "SIGINT" : "SIGHUP"
        service?.stopping(name)
        log.info("\(name): ending")
        server.stop()
        history.stop()
        socket.remove()
        return ExitCode.done
    }

    /// Whether there is a directory for the last day's figures. Without a home directory, only /tmp would be left,
    /// which is unsafe because other users may create links there.
    private static func hasPlaceForHistory(_ options: WebOptions, _ log: Log) -> Bool {
        func isNamed(_ name: String) -> Bool { getenv(name).map { $0.pointee != 0 } ?? false }
        if options.historyDirectory != nil || isNamed("XDG_CACHE_HOME") || isNamed("HOME") { return true }
        log.warning(
            "the last day's figures are kept in memory only: neither HOME nor XDG_CACHE_HOME is set (use --history)"
        )
        return false
    }

    /// The number of descriptors needed for the daemon and the larder's files, in addition to those of browsers.
    private static let ownDescriptors: rlim_t = 48 + rlim_t(HTTPServer.spareConnections)

    /// Raises the limit of open files for the connections: without descriptors, a listener would retry accept
    /// continuously.
    /// - Returns: the number of connections allowed.
    private static func descriptorsAllow(_ connections: UInt32, _ log: Log) -> UInt32 {
        guard let limit = ResourceLimit.openFiles.read() else { return connections }
        let wanted = rlim_t(connections) + ownDescriptors
        guard limit.rlim_cur < wanted else { return connections }
        ResourceLimit.openFiles.set(current: min(limit.rlim_max, wanted))
        let most = ResourceLimit.openFiles.read()?.rlim_cur ?? limit.rlim_cur
        let allowed = UInt32(min(rlim_t(connections), max(1, most - min(most, ownDescriptors))))
        if allowed < connections {
            log.warning("the limit of open files, \(most), allows only \(allowed) of \(connections) connections")
        }
        return allowed
    }
}

enum ExitCode {
    static let done: Int32 = 0
    /// A system call failed.
    static let failed: Int32 = 1
    static let usage: Int32 = 2
    /// Another process uses the socket.
    static let taken: Int32 = 3

    /// All exit codes, for the help and the manual page.
    static let all: [(code: Int32, meaning: String)] = [
        (done, "success"), (failed, "system error, such as an address in use"), (usage, "wrong usage"),
        (taken, "another process uses the socket"),
    ]
}

extension WebProgram {
    static let summary = "shows a running larderd in a browser, and exports metrics to Prometheus"

    static var manualPage: String {
        ManualPage.page(
            "larderweb", 8, summary,
            [
                "SYNOPSIS": ".B larderweb\n.RI [ OPTION ...]",
                "DESCRIPTION": """
                Serves pages about the
                .BR larderd (8)
                of this machine:
                .B /
                shows operations and their times, hit ratio, databases with their limits, lifetimes of entries, journal, slow commands and clients,
                and
                .B /entries
                shows keys and entries.
                .B /metrics
                is for Prometheus, in its text format or OpenMetrics 1.0, and
                .B /healthz
                for health checks. It is an ordinary client of the daemon, and keeps running while the daemon is not available.
                """,
                "OPTIONS": WebOptions.table.rows.map(\.manualItem).joined(),
                "ACCESS": """
                Any client that can connect can read all keys and values of the daemon. On 127.0.0.1, these are all users of this machine: use
                .B \\-\\-token\\-file
                or
                .B \\-\\-listen unix:/path
                to prevent that. Other machines need a token, and there is no TLS: use a proxy for that. Requests with unknown host names, and
                requests of other sites' pages, are refused.
                """,
                "SIGNALS": signals,
                "EXIT STATUS": ExitCode.all.map { ManualPage.item("\($0.code)", [$0.meaning]) }.joined(),
                "ENVIRONMENT": ManualPage.item("LARDER_SOCKET", ["the daemon's socket"]),
                "FILES": """
                .TP
                .I /etc/larder/larderweb.env
                the options of the system's service, as LARDERWEB_OPTIONS=...
                .TP
                .I /var/cache/larderweb
                the service's figures of the last day
                """,
                "EXAMPLES": """
                .nf
                larderweb
                larderweb \\-\\-listen unix:/run/user/1000/larderweb
                larderweb \\-\\-listen 0.0.0.0:8377 \\-\\-token\\-file /etc/larder/token \\-\\-host cache.example.org
                .fi
                """,
                "SEE ALSO": ".BR larderctl (1),\n.BR larderd (8)",
            ])
    }
}
