import LarderPlatform
import LarderWire

/// Connections on which the daemon blocks a request, one for each caller.
///
/// Thread-safe. `@unchecked Sendable`: mutable state is guarded by `lock`.
final class WaitingLinks: @unchecked Sendable {
    private let settings: LinkSettings
    private let lock = Lock()
    private var links: [ObjectIdentifier: Link] = [:]
    private var isClosed = false

    init(_ settings: LinkSettings) { self.settings = settings }

    /// Creates a connection, which must be closed with ``end(_:)``.
    /// - Parameter milliseconds: how long the daemon may block the request; nil for no limit.
    func begin(waiting milliseconds: Int64?) -> Link {
        var settings = settings
        if let milliseconds, settings.timeoutMilliseconds > 0 {
            settings.timeoutMilliseconds += Int(clamping: milliseconds)
        } else {
            settings.timeoutMilliseconds = 0
        }
        let link = Link(settings)
        let isClosed = lock.withLock {
            links[ObjectIdentifier(link)] = link
            return self.isClosed
        }
        if isClosed { link.close() }
        return link
    }

    func end(_ link: Link) {
        lock.withLock { links[ObjectIdentifier(link)] = nil }
        link.close()
    }

    func close() {
        let open = lock.withLock {
            isClosed = true
            return Array(links.values)
        }
        for link in open { link.close() }
    }
}
