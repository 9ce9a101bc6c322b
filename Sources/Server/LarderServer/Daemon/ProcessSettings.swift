import LarderPlatform

/// Settings of the daemon's process.
package enum ProcessSettings {
    /// Makes writing to a closed connection, or beyond the limit of a file's size, an error that does not terminate the
    /// process.
    package static func ignoreWriteSignals() {
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
    }

    /// Ignores SIGUSR1 and SIGUSR2, which would terminate the process by default.
    package static func ignoreUserSignals() {
        signal(SIGUSR1, SIG_IGN)
        signal(SIGUSR2, SIG_IGN)
    }

    /// Unblocks the signals that stop the daemon: its parent may have blocked them.
    static func unblockStopSignals() {
        var signals = sigset_t()
        sigemptyset(&signals)
        for number in [SIGTERM, SIGINT, SIGHUP] { sigaddset(&signals, number) }
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    }

    /// Ignores repeated stop signals during shutdown: only SIGINT, which a person sends, terminates the process at
    /// once.
    static func ignoreRepeatedStopSignals() {
        signal(SIGTERM, SIG_IGN)
        signal(SIGHUP, SIG_IGN)
    }

    /// Whether the parent ignored SIGHUP, as nohup does, so that the process outlives its terminal.
    static var ignoresHangUp: Bool {
        var action = sigaction()
        guard sigaction(SIGHUP, nil, &action) == 0 else { return false }
        // SIG_IGN is the address 1; Swift cannot compare it.
        return withUnsafeBytes(of: &action) { $0.load(as: UInt.self) } == 1
    }

    /// Raises the limit of open descriptors to the maximum.
    /// - Returns: the new limit.
    static func raiseDescriptorLimit() -> Int {
        guard var limit = ResourceLimit.openFiles.read() else { return descriptorsMost }
        // Some systems refuse RLIM_INFINITY, although they report it as the maximum.
        let most = min(limit.rlim_max, rlim_t(descriptorsMost))
        if limit.rlim_cur < most {
            var raised = limit
            raised.rlim_cur = most
            if ResourceLimit.openFiles.set(raised) { limit = raised }
        }
        return Int(clamping: limit.rlim_cur)
    }

    private static let descriptorsMost = 1 << 20
}
