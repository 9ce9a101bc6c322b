import LarderPlatform

/// Reads the configuration file again, and puts in force what may change while the daemon serves.
///
/// A file with anything wrong in it changes nothing. Thread-safe. The proof for `@unchecked Sendable`: the command line is
/// read and written with the lock held.
final class ConfigurationReload: @unchecked Sendable {
    private let lock = Lock()
    /// What is in force.
    private var current: DaemonCommandLine
    private let server: ServerState
    private let service: ServiceManager?
    private let log: Log

    /// - Returns: nil if the command line names no configuration file.
    init?(_ commandLine: DaemonCommandLine, server: ServerState, service: ServiceManager?, log: Log) {
        guard commandLine.filePath != nil else { return nil }
        current = commandLine
        self.server = server
        self.service = service
        self.log = log
    }

    /// May block, as reading a file does.
    func run() {
        lock.withLock {
            service?.reloading()
            defer { service?.ready("serving") }
            let path = current.filePath ?? ""
            do throws(DaemonCommandLine.Failure) {
                let new = try current.readAgain()
                for warning in Precautions.passwordWarnings(new.configuration.passwordPath) { log.warning(warning) }
                let changes = DaemonOption.serving.count { take($0, new) }
                log.info(
                    "SIGHUP: read \(path) again\(new.hasReadFile ? "" : ", which is missing"), changed: \(changes)")
            } catch {
                log.error("SIGHUP: the configuration stays as it was, because of what is wrong with it:")
                for line in error.description.split(separator: "\n") { log.error(String(line)) }
            }
        }
    }

    /// - Returns: whether something has changed.
    private func take(_ option: DaemonOption, _ new: DaemonCommandLine) -> Bool {
        guard new.differs(option, from: current) else { return false }
        guard let live = option.live else {
            log.warning("\(new.shown(option)) takes effect when larderd is started again")
            return false
        }
        if let problem = live.problem(server, new) {
            log.warning("\(new.shown(option)) is not possible: \(problem)")
            return false
        }
        live.set(server, new)
        current.adopt(option, from: new)
        log.info("\(new.shown(option)) is in force")
        return true
    }
}
