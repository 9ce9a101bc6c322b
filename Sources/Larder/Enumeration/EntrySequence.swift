import LarderEngine

/// Entries of a ``Cache`` or a ``CacheSnapshot`` in the order of their keys' bytes, read lazily.
///
/// ```swift
/// try cache.entries(of: Reader.self, EntryOptions(prefix: "reader:", backward: true)).enumerate { entry, stop in
///     print(entry.key, try entry.value().userName)
///     stop = entry.key < "reader:m"
/// }
///
/// let entries = try cache.entries(of: Reader.self).makeIterator()
/// while let entry = try entries.next() { print(entry.key) }
///
/// for try await entry in cache.entries(of: Reader.self, from: "a", to: "m") { print(entry.key) }
/// ```
///
/// A *run* is one enumeration of the entries. It sees the entries as of its start: no later writes, and no entries that
/// expire during the run. While it lasts, obsolete files stay on the disk, so a run should not last for hours. If the
/// larder has used half of ``CacheOptions/diskBytesMax``, it removes these files nevertheless. The run then continues
/// with the current entries, and still returns each key at most once. Runs of a snapshot never see newer entries.
///
/// Starting a run reads all entries of the database that are not in LevelDB yet: usually at most 64 MiB of journal.
/// Entries with the prefix are copied. Removed entries that LevelDB has not compacted yet slow down the search for the
/// first entry.
///
/// It is not a `Sequence`, because a `Sequence`'s iterator cannot throw: a failing disk would look like the end of the
/// data. It is an `AsyncSequence`: Larder's own threads read up to 128 entries ahead, and the calling task decodes the
/// models.
///
/// Single owner, like its runs: used by one thread at a time.
public struct EntrySequence<Value: Decodable> {
    let source: CacheSource
    var options: EntryOptions
    var filters: [CacheEntry<Value>.Filter] = []

    init(source: CacheSource, options: EntryOptions) { (self.source, self.options) = (source, options) }

    /// Returns the entries for which `isIncluded` is true. `isIncluded` is called lazily, for each entry in turn. If it
    /// throws a ``LarderError``, the run throws that error; any other error becomes the ``LarderError/underlying``
    /// error of ``LarderError/Code/filterFailed``.
    public func filter(_ isIncluded: @escaping (CacheEntry<Value>) throws -> Bool) -> EntrySequence {
        var filtered = self
        filtered.filters.append(isIncluded)
        return filtered
    }

    /// Starts a run. Use it for loops that cannot be written with ``enumerate(_:)``. This call and each step of the run
    /// block the thread. For the costs see ``EntrySequence``.
    @available(*, noasync, message: "iterate over the entries with for try await")
    public func makeIterator() throws(LarderError) -> EntryIterator<Value> { try run() }

    private func run() throws(LarderError) -> EntryIterator<Value> { try EntryIterator(source, options, filters) }

    /// Calls `body` for each entry until the last, or until `body` sets its second argument to true.
    /// - Throws: ``LarderError``, and errors of `body`.
    @available(*, noasync, message: "iterate over the entries with for try await")
    public func enumerate(_ body: (CacheEntry<Value>, _ stop: inout Bool) throws -> Void) throws {
        let iterator = try run()
        defer { iterator.close() }
        var stop = false
        while !stop, let entry = try iterator.next() { try body(entry, &stop) }
    }

    /// Returns the results of `transform` for all entries.
    /// - Throws: ``LarderError``, and errors of `transform`.
    public func map<Result>(_ transform: (CacheEntry<Value>) throws -> Result) throws -> [Result] {
        var results: [Result] = []
        let iterator = try run()
        defer { iterator.close() }
        while let entry = try iterator.next() { results.append(try transform(entry)) }
        return results
    }

    /// Returns the number of entries.
    public func count() throws(LarderError) -> Int {
        var count = 0
        try forEach { _ in count += 1 }
        return count
    }

    /// Returns the keys. Reads values only if a filter needs them. Omits keys that are not UTF-8, because a `String`
    /// cannot hold them; use ``CacheEntry/keyBytes`` for such keys.
    public func keys() throws(LarderError) -> [String] {
        var keys: [String] = []
        try forEach { (entry) throws(LarderError) in
            if let key = entry.text { keys.append(key) }
        }
        return keys
    }

    /// Returns the models. An entry with a value of another type is an error or is omitted: see
    /// ``CacheOptions/onDecodingFailure``.
    public func values() throws(LarderError) -> [Value] {
        var values: [Value] = []
        try forEach { (entry) throws(LarderError) in
            if let value = try entry.valueIfAny() { values.append(value) }
        }
        return values
    }

    /// Returns the models by their keys. An entry with a value of another type is an error or is omitted: see
    /// ``CacheOptions/onDecodingFailure``.
    /// - Throws: ``LarderError/Code/decoding`` for a key that is not UTF-8, and for two keys with different bytes that
    ///   Swift considers equal, because a dictionary cannot hold both.
    public func dictionary() throws(LarderError) -> [String: Value] {
        var dictionary: [String: Value] = [:]
        try forEach { (entry) throws(LarderError) in try entry.add(to: &dictionary) }
        return dictionary
    }

    /// Calls `body` for each entry until the last.
    private func forEach(_ body: (CacheEntry<Value>) throws(LarderError) -> Void) throws(LarderError) {
        let iterator = try run()
        defer { iterator.close() }
        while let entry = try iterator.next() { try body(entry) }
    }
}
