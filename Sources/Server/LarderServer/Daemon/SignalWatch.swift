import CLarderUV
import LarderPlatform

/// Watches SIGTERM, SIGINT and SIGHUP on a loop.
///
/// SIGHUP reloads the configuration. Without a configuration file it stops the daemon too, unless the daemon's parent
/// ignored SIGHUP, as nohup does. Confined to that loop.
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
            // The server keeps this object alive while the loop runs, so it need not be retained.
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

    /// Ends the watch. From now on, SIGINT terminates the process, and further SIGTERM and SIGHUP are ignored: a
    /// supervisor may repeat them while the last checkpoint is running.
    func close() {
        defer { ProcessSettings.ignoreRepeatedStopSignals() }
        for handle in handles where uv_is_closing(asHandle(handle)) == 0 { uv_close(asHandle(handle), nil) }
    }
}
