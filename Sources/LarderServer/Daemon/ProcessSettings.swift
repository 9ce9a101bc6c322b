/// What a daemon asks of its process.
package enum ProcessSettings {
    /// Writing to a connection or a file that takes no more must be an error, not the end of the process.
    package static func ignoreWriteSignals() {
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
    }

    /// Lets the signals that stop the daemon through: who started it may have blocked them.
    static func unblockStopSignals() {
        var signals = sigset_t()
        sigemptyset(&signals)
        for number in [SIGTERM, SIGINT, SIGHUP] { sigaddset(&signals, number) }
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    }

    /// Whether who started the process has it live on when its terminal goes.
    static var ignoresHangUp: Bool {
        var action = sigaction()
        guard sigaction(SIGHUP, nil, &action) == 0 else { return false }
        // As SIG_IGN, which Swift cannot compare: the address 1.
        return withUnsafeBytes(of: &action) { $0.load(as: UInt.self) } == 1
    }

    /// Raises the limit of open descriptors as far as the process may.
    /// - Returns: how many it may have open now.
    static func raiseDescriptorLimit() -> Int {
        #if canImport(Darwin) || canImport(Musl)
            let resource = RLIMIT_NOFILE
        #else
            let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #endif
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return descriptorsMost }
        // Some systems refuse what they call unlimited.
        let most = min(limit.rlim_max, rlim_t(descriptorsMost))
        if limit.rlim_cur < most {
            var raised = limit
            raised.rlim_cur = most
            if setrlimit(resource, &raised) == 0 { limit = raised }
        }
        return Int(clamping: limit.rlim_cur)
    }

    private static let descriptorsMost = 1 << 20
}
