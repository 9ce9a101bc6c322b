// swift-format-ignore-file: AmbiguousTrailingClosureOverload
// Some calls have one form for closures that await and one for closures that do not.

import LarderEngine
import LarderPlatform

// Asynchronous enumeration: Larder's own threads read entries ahead, and the calling task decodes them.

extension EntrySequence: AsyncSequence {
    public typealias Element = CacheEntry<Value>
    public typealias Failure = LarderError

    /// Starts a run. The run releases its files when it ends or when the iterator is released.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }

    /// An asynchronous run over an ``EntrySequence``. Single owner: belongs to one task.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let source: CacheSource
        private let filters: [CacheEntry<Value>.Filter]
        private let reader: EntryReader
        private var entries: ArraySlice<EntryReader.Entry> = []
        private var remaining: Int?

        init(_ sequence: EntrySequence) {
            source = sequence.source
            filters = sequence.filters
            reader = EntryReader(sequence.source, sequence.options)
        }

        /// Returns the next entry; nil at the end.
        /// - Throws: the same errors as ``EntryIterator/next()``; the run is over afterwards.
        public mutating func next() async throws(LarderError) -> CacheEntry<Value>? {
            try await next(isolation: #isolation)
        }

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(LarderError) -> CacheEntry<
            Value
        >? {
            do throws(LarderError) {
                if remaining == nil { remaining = try reader.options.checkedLimit(source.database.name) }
                while let left = remaining, left > 0, let next = try await nextRead() {
                    // Skip entries that have expired since they were read ahead.
                    if !reader.options.includingExpired, next.hasExpired(source) { continue }
                    let copy = CopiedEntry<Value>(source, next.record, next.info)
                    let entry = CacheEntry<Value>(content: .copied(copy), storedKey: next.key)
                    guard try filters.allow(entry) else { continue }
                    remaining = left - 1
                    return entry
                }
            } catch {
                end()
                throw error
            }
            end()
            return nil
        }

        private mutating func nextRead() async throws(LarderError) -> EntryReader.Entry? {
            if entries.isEmpty { entries = try await reader.readAhead()[...] }
            return entries.popFirst()
        }

        private mutating func end() {
            remaining = 0
            entries = []
            reader.close()
        }
    }

    // MARK: All at once

    /// Runs ``map(_:)-((CacheEntry<Value>)->Result)`` without blocking the calling thread.
    public func map<Result>(_ transform: (CacheEntry<Value>) async throws -> Result) async throws -> [Result] {
        var results: [Result] = []
        for try await entry in self { results.append(try await transform(entry)) }
        return results
    }

    /// Like the call above, for a closure that does not await.
    public func map<Result>(_ transform: (CacheEntry<Value>) throws -> Result) async throws -> [Result] {
        try await map { (entry: CacheEntry<Value>) async throws in try transform(entry) }
    }

    /// Runs ``count()`` without blocking the calling thread.
    public func count() async throws(LarderError) -> Int {
        var count = 0
        for try await _ in self { count += 1 }
        return count
    }

    /// Runs ``keys()`` without blocking the calling thread.
    public func keys() async throws(LarderError) -> [String] {
        var keys: [String] = []
        for try await entry in self { if let key = entry.text { keys.append(key) } }
        return keys
    }

    /// Runs ``values()`` without blocking the calling thread.
    public func values() async throws(LarderError) -> [Value] {
        var values: [Value] = []
        for try await entry in self { if let value = try entry.valueIfAny() { values.append(value) } }
        return values
    }

    /// Runs ``dictionary()`` without blocking the calling thread.
    public func dictionary() async throws(LarderError) -> [String: Value] {
        var dictionary: [String: Value] = [:]
        for try await entry in self { try entry.add(to: &dictionary) }
        return dictionary
    }
}

/// Reads entries ahead, on threads that may block.
///
/// Thread-safe. `@unchecked Sendable`: mutable properties are guarded by `lock`, and the cursor is used by one call of
/// ``readAhead()`` at a time, because a run has one owner.
final class EntryReader: @unchecked Sendable {
    /// An entry that was read ahead.
    struct Entry: Sendable {
        let key: Key
        let record: Record
        let info: EntryInfo

        func hasExpired(_ source: CacheSource) -> Bool {
            source.database.rules.freshness(record.header, now: source.database.now()) != .fresh
        }
    }

    /// The limits for reading ahead: the number of entries, and their approximate size in bytes.
    private static let entriesMax = 128
    private static let bytesMax = 256 << 10

    let options: EntryOptions
    private let source: CacheSource
    private let lock = Lock()
    private var hasBegun = false
    private var isClosed = false
    /// The cursor, and the engine, which keeps the larder open. Nil before the first read and after the end.
    private var run: (cursor: EntryCursor, engine: Engine)?

    init(_ source: CacheSource, _ options: EntryOptions) { (self.source, self.options) = (source, options) }

    /// Returns the next entries; an empty array at the end.
    func readAhead() async throws(LarderError) -> [Entry] {
        try await BlockingWork.run { () throws(LarderError) in try self.read() }
    }

    private func read() throws(LarderError) -> [Entry] {
        guard let cursor = try cursor() else { return [] }
        var entries: [Entry] = []
        var bytes = 0
        while entries.count < Self.entriesMax, bytes < Self.bytesMax {
            guard try cursor.next() else { break }
            let key = try cursor.key()
            switch options.position(of: key.bytes) {
            case .before: continue
            case .behind:
                close()
                return entries
            case .inside:
                let record = try cursor.record()
                let now = source.database.now()
                let info = source.info(record.header, byteCount: record.payloadCount, now: now)
                entries.append(Entry(key: key, record: record, info: info))
                bytes += record.stored.count
            }
        }
        if entries.isEmpty { close() }
        return entries
    }

    private func cursor() throws(LarderError) -> EntryCursor? {
        let (isFirst, cursor) = lock.withLock {
            defer { hasBegun = true }
            return (!hasBegun, run?.cursor)
        }
        guard isFirst else { return cursor }
        let made = try source.cursor(options.enumeration)
        lock.withLock { run = isClosed ? nil : made }
        return made?.0
    }

    /// Releases the files. Idempotent.
    func close() {
        var last = lock.withLock {
            isClosed = true
            return run.take()
        }
        last?.cursor.close()
        // Release the engine outside the lock: its last release shuts the larder down, which takes time.
        last = nil
    }
}
