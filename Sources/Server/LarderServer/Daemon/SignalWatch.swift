import CLarderUV
import LarderPlatform

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
