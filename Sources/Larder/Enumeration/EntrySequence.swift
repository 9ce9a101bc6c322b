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
/// Each run over it begins anew and sees the entries as they are when it begins: what is written meanwhile does not show,
/// what expires meanwhile is left out. While a run lasts, files that are no longer needed stay on the disk, so it should
/// not last for hours.
///
/// To begin a run, however few entries it is to give, costs time for every entry of the database that was written and is not
/// in LevelDB yet (what some 64 MiB of journal hold at the usual most), and memory for those that have the prefix. To come to
/// the first entry costs time for what was removed before it and LevelDB has not compacted away.
///
/// It is not a `Sequence`, whose iterator could not throw: a disk that fails would look like the end of the data. It is an
/// `AsyncSequence`: then entries are read ahead, some hundred at a time, by threads that may block, and models are decoded
/// by the task that asks for them.
///
/// Single owner, as are its runs: used by one thread at a time.
public struct EntrySequence<Value: Decodable> {
    let source: CacheSource
    var options: EntryOptions
    var filters: [CacheEntry<Value>.Filter] = []

    init(source: CacheSource, options: EntryOptions) {
        self.source = source
        self.options = options
    }

    /// Only the entries that `isIncluded` is true for. Runs lazily, for each entry in turn. What it throws arrives as it is
    /// if it is a ``LarderError``, and otherwise as ``LarderError/underlying`` of one, ``LarderError/Code/filterFailed``.
    public func filter(_ isIncluded: @escaping (CacheEntry<Value>) throws -> Bool) -> EntrySequence {
        var filtered = self
        filtered.filters.append(isIncluded)
        return filtered
    }

    /// Begins a run. For loops that cannot be a closure. Blocks its thread, as do the runs' steps. What it costs: see
    /// ``EntrySequence``.
    @available(*, noasync, message: "go over the entries with for try await")
    public func makeIterator() throws(LarderError) -> EntryIterator<Value> { try run() }

    private func run() throws(LarderError) -> EntryIterator<Value> { try EntryIterator(source, options, filters) }

    /// Calls `body` for each entry, until the last or until `body` sets its second argument to true.
    /// - Throws: ``LarderError``, and what `body` throws.
    @available(*, noasync, message: "go over the entries with for try await")
    public func enumerate(_ body: (CacheEntry<Value>, _ stop: inout Bool) throws -> Void) throws {
        let iterator = try run()
        defer { iterator.close() }
        var stop = false
        while !stop, let entry = try iterator.next() { try body(entry, &stop) }
    }

    /// What `transform` makes of each entry.
    /// - Throws: ``LarderError``, and what `transform` throws.
    public func map<Result>(_ transform: (CacheEntry<Value>) throws -> Result) throws -> [Result] {
        var results: [Result] = []
        let iterator = try run()
        defer { iterator.close() }
        while let entry = try iterator.next() { results.append(try transform(entry)) }
        return results
    }

    /// How many entries there are.
    public func count() throws(LarderError) -> Int {
        var count = 0
        try forEach { _ in count += 1 }
        return count
    }

    /// The keys. Values are read only where a filter asks for them.
    /// - Throws: ``LarderError/Code/decoding`` at a key that is not UTF-8 and so is no `String`.
    public func keys() throws(LarderError) -> [String] {
        var keys: [String] = []
        try forEach { (entry) throws(LarderError) in keys.append(try entry.textKey()) }
        return keys
    }

    /// The models. An entry that holds something else is an error or is left out, as
    /// ``CacheOptions/onDecodingFailure`` says.
    public func values() throws(LarderError) -> [Value] {
        var values: [Value] = []
        try forEach { (entry) throws(LarderError) in
            if let value = try entry.valueIfAny() { values.append(value) }
        }
        return values
    }

    /// The models by their keys. An entry that holds something else is an error or is left out, as
    /// ``CacheOptions/onDecodingFailure`` says.
    /// - Throws: ``LarderError/Code/decoding`` at a key that is not UTF-8, and at one that Swift holds equal to another
    ///   although their bytes differ, since a dictionary could not hold both.
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
