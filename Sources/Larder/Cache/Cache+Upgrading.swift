import LarderEngine
import LarderModelCoding
import LarderPlatform

// The upgrade of stored entries: see `Schema`.

/// How far `upgradeAll` has come.
public struct UpgradeProgress: Hashable, Sendable {
    /// The number of entries that were read.
    public fileprivate(set) var examined = 0
    /// The number of entries that were stored again, because they were older or lacked a default.
    public fileprivate(set) var upgraded = 0
    /// The number of entries that cannot be upgraded: they are not models of the type, or fail a check. They are
    /// unchanged.
    public fileprivate(set) var failed = 0
    /// The error of the first of these entries, with its key; nil if there is none.
    public fileprivate(set) var firstFailure: String?
}

extension Cache {
    /// Stores the entries again that are older, or lack fields with defaults, as their schema reads them. Queries then
    /// find these fields too. Entries that are changed or removed meanwhile are left alone. An entry keeps its tags and
    /// its remaining lifetime: one that follows the database's policy gets its present deadline as its own.
    ///
    /// Reads all entries, in batches.
    /// - Parameters:
    ///   - type: the model's type, for which this cache has a schema.
    ///   - prefix: only entries whose keys begin with this; by default all. Necessary if the database has entries of
    ///     other types that the upgrade would change.
    ///   - progress: called after each batch. If it throws, the call ends.
    /// - Returns: the progress at the end.
    /// - Throws: ``LarderError/Code/invalidArgument`` if this cache has no schema of the type.
    @discardableResult
    @_disfavoredOverload  // In asynchronous code, Swift would prefer this form for synchronous closures.
    public func upgradeAll<Value: Codable>(
        _ type: Value.Type, keyPrefix prefix: some CacheKey = "",
        progress: (UpgradeProgress) throws -> Void = { _ in }
    ) throws -> UpgradeProgress {
        var state = UpgradeProgress()
        var options = EnumerationOptions(prefix: prefix.keyBytes)
        while true {
            let next = try upgradeBatch(type, options, &state)
            try progress(state)
            guard let next else { return state }
            options.start = next
        }
    }

    /// Runs ``upgradeAll(_:keyPrefix:progress:)-(Value.Type,CacheKey,(UpgradeProgress)->Void)`` without blocking the
    /// calling thread. Throws `CancellationError` after a batch if the task is cancelled.
    @discardableResult
    public func upgradeAll<Value: Codable & SendableMetatype>(
        _ type: Value.Type, keyPrefix prefix: some CacheKey = "",
        progress: (UpgradeProgress) async throws -> Void = { _ in }
    ) async throws -> UpgradeProgress {
        var state = UpgradeProgress()
        var options = EnumerationOptions(prefix: prefix.keyBytes)
        while true {
            let next: [UInt8]?
            (state, next) = try await BlockingWork.run { [state, options] () throws(LarderError) in
                var state = state
                let next = try self.upgradeBatch(type, options, &state)
                return (state, next)
            }
            try await progress(state)
            guard let next else { return state }
            try Task.checkCancellation()
            options.start = next
        }
    }

    /// Upgrades the older entries of a batch.
    /// - Returns: where the next batch begins; nil if this was the last one.
    private func upgradeBatch<Value: Codable>(
        _ type: Value.Type, _ options: EnumerationOptions, _ state: inout UpgradeProgress
    ) throws(LarderError) -> [UInt8]? {
        guard source.codec.hasSchema(of: type) else {
            throw LarderError(
                .invalidArgument, "this cache has no schema of \(type)", operation: "upgrade", database: name)
        }
        guard let (cursor, engine) = try source.cursor(options) else { return nil }
        var (older, next, count): ([Key], [UInt8]?, Int) = ([], nil, 0)
        defer { withExtendedLifetime(engine) {} }
        try cursor.readAll { entry in
            if count == Self.upgradeBatchCount {
                next = [UInt8](entry.key)
                return false
            }
            count += 1
            do {
                let text = try source.codec.currentText(of: type, entry.payload, storedAs: .raw)
                if text != nil { older.append(Key(entry.key)) }
            } catch {
                state.failed += 1
                if state.firstFailure == nil {
                    let failure = LarderError.decodingFailed(type, .json, Key(entry.key), name, error)
                    state.firstFailure = failure.during("upgrade").description
                }
            }
            return true
        }
        cursor.close()
        state.examined += count
        for key in older where try upgrade(type, key) { state.upgraded += 1 }
        return next
    }

    private static var upgradeBatchCount: Int { 256 }

    /// - Returns: whether the entry was stored again.
    private func upgrade<Value: Codable>(_ type: Value.Type, _ key: Key) throws(LarderError) -> Bool {
        guard let record = try source.record(key, "upgrade") else { return false }
        let text: [UInt8]?
        do {
            text = try record.withPayload { payload in
                Result { try source.codec.currentText(of: type, payload, storedAs: record.header.codec) }
            }.get()
        } catch {
            return false
        }
        guard let text else { return false }
        return try source.whileOpen("upgrade") { (_) throws(LarderError) in
            try source.database.commit([key], loading: .records, durability: durability) { update in
                guard update.current(0) == record else { return false }
                var rule = record.header.rule
                if case .governed = rule, let deadline = update.rules.deadline(record.header) { rule = .own(deadline) }
                text.withUnsafeBytes {
                    update.put(
                        0, payload: $0, rule: rule, grace: record.header.grace, codec: record.header.codec,
                        tags: record.tags)
                }
                return true
            }
        }
    }
}
