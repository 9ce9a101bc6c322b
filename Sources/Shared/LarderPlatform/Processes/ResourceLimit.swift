/// A resource limit of this process: getrlimit(2) and setrlimit(2).
package enum ResourceLimit {
    /// One more than the highest descriptor that this process may use.
    case openFiles
    /// The maximum length of a file that this process may write, in bytes.
    case fileSize

    private var number: ResourceNumber {
        switch self {
        case .openFiles: openFilesNumber
        case .fileSize: fileSizeNumber
        }
    }

    /// Returns the current soft and hard limit; nil if they cannot be read.
    package func read() -> rlimit? {
        var limit = rlimit()
        return getrlimit(number, &limit) == 0 ? limit : nil
    }

    /// Sets the soft and the hard limit.
    /// - Returns: false if the system refuses.
    @discardableResult
    package func set(_ limit: rlimit) -> Bool {
        var limit = limit
        return setrlimit(number, &limit) == 0
    }

    /// Sets the soft limit only.
    /// - Parameter current: the new soft limit; nil for the value of the hard limit.
    @discardableResult
    package func set(current: rlim_t?) -> Bool {
        guard var limit = read() else { return false }
        limit.rlim_cur = current ?? limit.rlim_max
        return set(limit)
    }
}
