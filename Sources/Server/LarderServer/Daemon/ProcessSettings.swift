import CLarderUV
import LarderPlatform

/// Settings of the daemon's process.
package enum ProcessSettings {
    /// Ignores SIGPIPE and SIGXFSZ. Writing to a closed connection, or beyond the size limit for files, then returns an
    /// error instead of terminating the process.
    package static func ignoreWriteSignals() {
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
    }

    /// Ignores SIGUSR1 and SIGUSR2, which would otherwise terminate the process.
    package static func ignoreUserSignals() {
        signal(SIGUSR1, SIG_IGN)
        signal(SIGUSR2, SIG_IGN)
    }

    /// Unblocks the signals that stop the daemon, because the parent process may have blocked these signals.
    static func unblockStopSignals() {
        var signals = sigset_t()
        sigemptyset(&signals)
        for number in [SIGTERM, SIGINT, SIGHUP] { sigaddset(&signals, number) }
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    }

    /// Ignores further SIGTERM and SIGHUP during the shutdown. SIGINT, as from Ctrl-C, still terminates the process.
    static func ignoreRepeatedStopSignals() {
        signal(SIGTERM, SIG_IGN)
        signal(SIGHUP, SIG_IGN)
    }

    /// Whether the parent process has ignored SIGHUP, as nohup does.
    static var ignoresHangUp: Bool {
        var action = sigaction()
        guard sigaction(SIGHUP, nil, &action) == 0 else { return false }
        // Swift cannot compare function pointers, but SIG_IGN is the address 1.
        return withUnsafeBytes(of: &action) { $0.load(as: UInt.self) } == 1
    }

    /// Raises the limit of open descriptors as far as the system allows.
    /// - Returns: the limit that now applies.
    static func raiseDescriptorLimit() -> Int {
        guard var limit = ResourceLimit.openFiles.read() else { return descriptorsMost }
        // Some systems report RLIM_INFINITY as the maximum, but refuse to set that value.
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

/// Handles SIGTERM, SIGINT and SIGHUP on an event loop. Only the loop's thread uses this object.
///
/// SIGTERM and SIGINT stop the daemon. SIGHUP reloads the configuration file. Without such a file, SIGHUP stops the
/// daemon too, unless the parent process has ignored SIGHUP, as nohup does.
final class SignalWatch {
    private let handles: [UnsafeMutablePointer<uv_signal_t>]
    private let onStop: (String) -> Void
    private let onHangUp: (() -> Void)?

    init(_ eventLoop: EventLoop, onStop: @escaping (String) -> Void, onHangUp: (() -> Void)?) {
        self.onStop = onStop
        self.onHangUp = onHangUp
        let numbers = [SIGTERM, SIGINT] + (onHangUp == nil && ProcessSettings.ignoresHangUp ? [] : [SIGHUP])
        handles = numbers.map { _ in .allocate(capacity: 1) }
        for (handle, number) in zip(handles, numbers) {
            uv_signal_init(eventLoop.loop, handle)
            // The server releases this object only after the loop has stopped, so the handle need not retain it.
            handle.pointee.data = Unmanaged.passUnretained(self).toOpaque()
            uv_signal_start(
                handle,
                { handle, number in
                    guard let data = handle?.pointee.data else { return }
                    Unmanaged<SignalWatch>.fromOpaque(data).takeUnretainedValue().take(number)
                }, number)
        }
    }

    deinit { for handle in handles { handle.deallocate() } }

    private func take(_ number: Int32) {
        if number == SIGHUP, let onHangUp { return onHangUp() }
        onStop(number == SIGTERM ? "SIGTERM" : number == SIGINT ? "SIGINT" : "SIGHUP")
    }

    /// Stops handling signals. From now on, SIGINT terminates the process. Further SIGTERM and SIGHUP are ignored,
    /// because a service manager may repeat them while the last checkpoint is being written.
    func close() {
        defer { ProcessSettings.ignoreRepeatedStopSignals() }
        for handle in handles where uv_is_closing(asHandle(handle)) == 0 { uv_close(asHandle(handle), nil) }
    }
}
