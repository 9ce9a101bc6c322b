import LarderPlatform

/// Connections on which the daemon keeps a request waiting: each for one caller.
///
/// Thread-safe. The proof for `@unchecked Sendable`: what changes is read and written with the lock held.
final class WaitingLinks: @unchecked Sendable {
    private let settings: LinkSettings
    private let lock = Lock()
    private var links: [ObjectIdentifier: Link] = [:]
    private var isClosed = false

    init(_ settings: LinkSettings) { self.settings = settings }

    /// A connection to be closed with ``end(_:)``.
    /// - Parameter milliseconds: for how long the daemon waits; nil for no limit.
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
