import LarderEngine

// The calls that may take long, for asynchronous code. Each runs on a thread of its own kind and never occupies Swift's
// cooperative pool. They do what their synchronous namesakes do, throw what those throw, and cannot be cancelled: what
// was begun is finished.

extension Cache {
    /// ``removeAll(counting:)``, without blocking the caller.
    @discardableResult
    public func removeAll(counting: Bool = false) async throws(LarderError) -> RemovalReport {
        try await BlockingWork.run { () throws(LarderError) in try self.removeAll(counting: counting) }
    }

    /// ``remove(prefix:)``, without blocking the caller.
    @discardableResult
    public func remove(prefix: some CacheKey) async throws(LarderError) -> RemovalReport {
        let bytes = prefix.keyBytes
        return try await BlockingWork.run { () throws(LarderError) in try self.remove(prefix: bytes) }
    }

    /// ``removeExpired()``, without blocking the caller.
    @discardableResult
    public func removeExpired() async throws(LarderError) -> RemovalReport {
        try await BlockingWork.run { () throws(LarderError) in try self.removeExpired() }
    }

    /// ``sweep()``, without blocking the caller.
    @discardableResult
    public func sweep() async throws(LarderError) -> Int {
        try await BlockingWork.run { () throws(LarderError) in try self.sweep() }
    }

    /// ``delete()``, without blocking the caller.
    public func delete() async throws(LarderError) {
        try await BlockingWork.run { () throws(LarderError) in try self.delete() }
    }

    /// ``delete(named:directory:)``, without blocking the caller.
    @discardableResult
    public static func delete(named name: String, directory: String? = nil) async throws(LarderError) -> Bool {
        try await BlockingWork.run { () throws(LarderError) in try delete(named: name, directory: directory) }
    }

    /// ``deleteAll(directory:)``, without blocking the caller.
    @discardableResult
    public static func deleteAll(directory: String? = nil) async throws(LarderError) -> [String] {
        try await BlockingWork.run { () throws(LarderError) in try deleteAll(directory: directory) }
    }
}
