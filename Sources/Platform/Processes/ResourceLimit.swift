/// What the system lets this process have of something, as getrlimit(2) and setrlimit(2) tell and change it.
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

    /// The limits that hold now; nil where the system does not tell.
    package func read() -> rlimit? {
        var limit = rlimit()
        return getrlimit(number, &limit) == 0 ? limit : nil
    }

    /// Changes the limits.
    /// - Returns: false where the system refuses.
    @discardableResult
    package func set(_ limit: rlimit) -> Bool {
        var limit = limit
        return setrlimit(number, &limit) == 0
    }

    /// Changes the limit that holds, not the most that it may be.
    /// - Parameter current: nil for as much as is allowed.
    @discardableResult
    package func set(current: rlim_t?) -> Bool {
        guard var limit = read() else { return false }
        limit.rlim_cur = current ?? limit.rlim_max
        return set(limit)
    }
}
