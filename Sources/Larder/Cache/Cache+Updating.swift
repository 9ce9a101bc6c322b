import LarderEngine
import LarderModelCoding
import LarderPlatform
import LarderVocabulary

// Read-modify-write calls.

extension Cache {
    /// Updates an entry atomically: reads it, lets `body` change it, and stores the result. If another caller has
    /// changed the entry in the meantime, `body` runs again with the new value.
    ///
    /// ```swift
    /// try cache.update(Basket.self, forKey: "ana") { basket in
    ///     basket = basket ?? Basket()
    ///     basket?.items.append(item)
    /// }
    /// ```
    /// No lock is held while `body` runs: it may be slow, and it may call the cache, but must not update the same key.
    /// - Parameters:
    ///   - type: the model's type.
    ///   - key: the entry's key.
    ///   - policy: how long the result stays fresh. The default, ``EntryPolicy/keep``, keeps the entry's expiry rule. A
    ///     deadline of its own stays the same. If the entry follows the database's policy, its lifetime starts again.
    ///   - tags: as for `set(_:forKey:policy:tags:durability:)`. If there are none, the entry keeps its tags.
    ///   - attempts: the maximum number of runs of `body`; `invalidArgument` is thrown for less than 1. With nil, the
    ///     default, the call throws `conflict` after at least 64 runs and 5 seconds. Between two runs the call pauses
    ///     for a random time, which grows up to half a second, so that many callers can change one key.
    ///   - durability: nil for ``CacheOptions/durability``.
    ///   - body: receives the model; nil if there is no fresh entry, or if its value is of another type, which
    ///     ``CacheOptions/onEvent`` reports. The model that `body` leaves in its argument is stored; if it leaves nil,
    ///     the entry is removed. `body` may run several times, so its side effects must be repeatable. If it throws,
    ///     nothing is written.
    /// - Returns: the result of the last run of `body`.
    /// - Throws: ``LarderError/Code/conflict`` if another caller changed the entry in every attempt;
    ///   ``LarderError/Code/recursion`` if the closure of an update of the key makes the call, or `body` stores the key
    ///   itself in two attempts in a row; the errors of `CacheReading.value(_:forKey:fillCache:)` and
    ///   `set(_:forKey:policy:tags:durability:)`, and errors of `body`.
    @discardableResult
    public func update<Value: Codable, Result>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, policy: EntryPolicy = .keep, tags: [String] = [],
        attempts: Int? = nil, durability: Durability? = nil, _ body: (inout Value?) throws -> Result
    ) throws -> Result {
        let key = try source.key(key, "update")
        let update = try RunningUpdate(of: key, self, attempts)
        defer { update.end() }
        return try exchange(key, "update", attempts, update) { record in
            var model = try record.flatMap { record throws(LarderError) in
                try source.decode(type, record, key, isReplaceable: true)
            }
            let result = try RunningUpdate.$current.withValue(update) { try body(&model) }
            return (result, try source.write(model, in: record, key, policy, tags, durability))
        }
    }

    /// Reads an entry and writes it, until no other caller has changed it in between.
    /// - Parameter body: returns the result, and the write, whose condition is the entry that was read; nil if there is
    ///   nothing to write.
    func exchange<Result>(
        _ key: Key, _ operation: String, _ attempts: Int? = nil, _ update: RunningUpdate? = nil,
        _ body: (Record?) throws -> (result: Result, write: EntryWrite?)
    ) throws -> Result {
        var runs = UpdateAttempts(most: attempts, limitMilliseconds: Self.updateMilliseconds)
        runs.update = update
        while true {
            let (result, write) = try body(try source.record(key, operation))
            guard let write, try !perform(write) else { return result }
            guard let rest = runs.rest() else { throw conflict(key, runs, operation) }
            WorkThread.sleep(nanoseconds: rest)
        }
    }

    /// The time limit, in milliseconds, of an update without a given number of attempts.
    static let updateMilliseconds = 5_000

    func conflict(_ key: Key, _ attempts: UpdateAttempts, _ operation: String) -> LarderError {
        LarderError(
            attempts.isRecursion ? .recursion : .conflict, attempts.conflict, operation: operation, database: name,
            key: key.description)
    }

    // MARK: Numbers

    /// Adds `step` to the integer of a key in one atomic step. A key without a fresh entry counts as 0. The entry keeps
    /// its expiry rule and its tags, and counts as stored now. The stored value is the number's decimal digits, as in
    /// JSON and in the daemon's commands.
    /// - Returns: the sum.
    /// - Throws: ``LarderError/Code/decoding`` if the value is not an integer; ``LarderError/Code/invalidArgument`` if
    ///   the sum is not an `Int`.
    @discardableResult
    public func increment(_ key: some CacheKey, by step: Int = 1, durability: Durability? = nil)
        throws(LarderError) -> Int
    {
        try addWhole(step, key, durability)
    }

    /// Like the call above, for integers of another type. The sum must fit into that type.
    @discardableResult
    public func increment<Value: FixedWidthInteger & Sendable>(
        _ key: some CacheKey, by step: Value, durability: Durability? = nil
    ) throws(LarderError) -> Value {
        try addWhole(step, key, durability)
    }

    /// Adds `step` to the number of a key in one atomic step. A key without a fresh entry counts as 0. The entry keeps
    /// its expiry rule and its tags, and counts as stored now.
    /// - Returns: the sum, as a `Double`.
    /// - Throws: ``LarderError/Code/decoding`` if the value is not a number; ``LarderError/Code/invalidArgument`` if
    ///   the sum is not finite.
    @discardableResult
    public func increment(_ key: some CacheKey, by step: Double, durability: Durability? = nil)
        throws(LarderError) -> Double
    {
        try add("a finite number", key, durability, zero: 0) {
            Double(counter: $0)
        } sum: {
            ($0 + step).isFinite ? $0 + step : nil
        } text: {
            // Without `.0` after integers, as the daemon writes it.
            Int(exactly: $0).map(\.description) ?? $0.description
        }
    }

    private func addWhole<Number: FixedWidthInteger>(
        _ step: Number, _ key: some CacheKey, _ durability: Durability?
    ) throws(LarderError) -> Number {
        try add(CounterText.kind(Number.self), key, durability, zero: 0) {
            CounterText.number(Number.self, $0)
        } sum: {
            let (sum, overflows) = $0.addingReportingOverflow(step)
            return overflows ? nil : sum
        } text: {
            $0.description
        }
    }

    /// Replaces the number of a key by its sum with another one, in one atomic step.
    /// - Parameters:
    ///   - kind: the kind of number, for messages.
    ///   - parse: returns the number with this text; nil if it is not a number of this kind.
    ///   - sum: returns the sum; nil if it cannot be represented.
    private func add<Number>(
        _ kind: String, _ key: some CacheKey, _ durability: Durability?, zero: Number,
        parse: (UnsafeRawBufferPointer) -> Number?, sum: (Number) -> Number?, text: (Number) -> String
    ) throws(LarderError) -> Number {
        let key = try source.key(key, "increment")
        let result = try source.whileOpen("increment") { (_) throws(LarderError) in
            try source.database.commit([key], loading: .records, durability: durability ?? self.durability) {
                update -> Result<Number, LarderError> in
                let previous = update.current(0)
                guard let number = previous.map({ $0.withPayload(parse) }) ?? zero else {
                    return .failure(
                        LarderError(
                            .decoding, "the value is not \(kind)", operation: "increment", database: name,
                            key: key.description))
                }
                guard let sum = sum(number) else {
                    return .failure(.invalid("the sum is not \(kind)", "increment", name, key))
                }
                var text = text(sum)
                text.withUTF8 { bytes in
                    let bytes = UnsafeRawBufferPointer(bytes)
                    update.put(
                        0, payload: bytes, rule: previous?.header.rule ?? .governed, grace: previous?.header.grace,
                        codec: previous?.header.codec ?? .json, tags: previous?.tags)
                }
                return .success(sum)
            }.get()
        }
        RunningUpdate.noteWrite(of: key.stored, in: source.database)
        return result
    }
}

extension CacheSource {
    /// Returns the write that completes an update; nil if there is nothing to write. `record` is the entry before the
    /// update, and `model` is the model that the closure has left.
    func write<Value: Encodable>(
        _ model: Value?, in record: Record?, _ key: Key, _ policy: EntryPolicy, _ tags: [String],
        _ durability: Durability?
    ) throws(LarderError) -> EntryWrite? {
        var write = EntryWrite(removing: key)
        if let model {
            let (payload, codec) = try codec.payload(of: model, key, database.name)
            write = try EntryWrite(payload, codec, key, policy, tags, database.name)
            write.tags = write.tags ?? record?.tags
        } else if record == nil {
            return nil
        }
        (write.condition, write.durability) = (.unchanged(record), durability)
        return write
    }
}

extension RunningUpdate {
    convenience init(of key: Key, _ cache: Cache, _ attempts: Int?) throws(LarderError) {
        if let attempts, attempts < 1 {
            throw LarderError(
                .invalidArgument, "attempts is \(attempts), and must be at least 1", operation: "update",
                database: cache.name)
        }
        do throws(Recursion) {
            try self.init(of: key.stored, in: cache.source.database)
        } catch {
            throw LarderError(
                .recursion, error.message, operation: "update", database: cache.name, key: key.description)
        }
    }
}

extension Double {
    /// Parses a number in decimal form; nil for other text.
    fileprivate init?(counter bytes: UnsafeRawBufferPointer) {
        // Reject hexadecimal numbers and names such as `inf`, which Double's own parser accepts.
        let isDecimal = bytes.allSatisfy { $0 >= 0x30 && $0 <= 0x39 || "+-.eE".utf8.contains($0) }
        guard isDecimal, bytes.count <= 400, let text = String(validating: bytes, as: UTF8.self),
            let number = Double(text), number.isFinite
        else { return nil }
        self = number
    }
}
