/// A resource limit of this process: getrlimit(2) and setrlimit(2).
package enum ResourceLimit {
    case openFiles
    /// The length of a file, in bytes.
    case fileSize

    private var number: ResourceNumber {
        switch self {
        case .openFiles: openFilesNumber
        case .fileSize: fileSizeNumber
        }
    }

    /// The present limits; nil if unknown.
    package func read() -> rlimit? {
        var limit = rlimit()
        return getrlimit(number, &limit) == 0 ? limit : nil
    }

    /// Changes the limits.
    /// - Returns: false if the system refuses.
    @discardableResult
    package func set(_ limit: rlimit) -> Bool {
        var limit = limit
        return setrlimit(number, &limit) == 0
    }

    /// Changes the soft limit, not the hard limit.
    /// - Parameter current: nil for the hard limit's value.
    @discardableResult
    package func set(current: rlim_t?) -> Bool {
        guard var limit = read() else { return false }
        limit.rlim_cur = current ?? limit.rlim_max
        return set(limit)
    }
}
