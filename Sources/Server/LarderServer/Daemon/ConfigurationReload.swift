import LarderPlatform

/// Reloads the configuration file, and applies those options that can change while the daemon runs.
///
/// If the file has an error, nothing is changed. Thread-safe.
final class ConfigurationReload: Sendable {
    /// The command line and the configuration file whose options apply at present.
    private let current: Locked<DaemonCommandLine>
    private let server: ServerState
    private let service: ServiceManager?
    private let log: Log

    /// - Returns: nil if the daemon was started without a configuration file.
    init?(_ commandLine: DaemonCommandLine, server: ServerState, service: ServiceManager?, log: Log) {
        guard commandLine.filePath != nil else { return nil }
        current = Locked(commandLine)
        self.server = server
        self.service = service
        self.log = log
    }

    /// Reloads the file. Blocks while the file is read.
    func run() {
        current.withLock { current in
            service?.reloading()
            defer { service?.ready("serving") }
            let path = current.filePath ?? ""
            do throws(UsageError) {
                let new = try current.readAgain()
                for warning in Precautions.passwordWarnings(new.configuration.passwordPath) { log.warning(warning) }
                let changes = DaemonOption.serving.count { take($0, new, &current) }
                log.info(
                    "SIGHUP: \(new.hasReadFile ? "reloaded \(path)" : "\(path) is missing"), changed options: \(changes)"
                )
            } catch {
                log.error("SIGHUP: the configuration was not changed, because of errors:")
                for line in error.description.split(separator: "\n") { log.error(String(line)) }
            }
        }
    }

    /// Applies an option if its value has changed.
    /// - Returns: whether the new value was applied.
    private func take(_ option: DaemonOption, _ new: DaemonCommandLine, _ current: inout DaemonCommandLine) -> Bool {
        guard new.differs(option, from: current) else { return false }
        guard let live = option.live else {
            log.warning("\(new.shown(option)) takes effect when larderd is restarted")
            return false
        }
        if let problem = live.problem(server, new) {
            log.warning("\(new.shown(option)) was not applied: \(problem)")
            return false
        }
        live.set(server, new)
        current.adopt(option, from: new)
        log.info("\(new.shown(option)) was applied")
        return true
    }
}
