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
        sigaddset(&signals, SIGTERM)
        sigaddset(&signals, SIGINT)
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    }

    /// Also raises the limit of open descriptors towards `descriptorsWanted`, as far as the system allows.
    static func prepareToServe(descriptorsWanted: Int, log: Log) {
        ignoreWriteSignals()
        let allowed = raiseDescriptorLimit(to: descriptorsWanted)
        guard allowed < descriptorsWanted else { return }
        log.debug("the system allows \(allowed) open descriptors; \(descriptorsWanted) would serve the most clients")
    }

    /// - Returns: how many descriptors the process may have open now.
    private static func raiseDescriptorLimit(to wanted: Int) -> Int {
        #if canImport(Darwin) || canImport(Musl)
            let resource = RLIMIT_NOFILE
        #else
            let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #endif
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return wanted }
        if limit.rlim_cur < rlim_t(wanted), limit.rlim_cur < limit.rlim_max {
            var raised = limit
            raised.rlim_cur = min(rlim_t(wanted), limit.rlim_max)
            if setrlimit(resource, &raised) == 0 { limit = raised }
        }
        return Int(clamping: limit.rlim_cur)
    }
}
