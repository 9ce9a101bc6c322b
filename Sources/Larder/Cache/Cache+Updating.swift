import LarderEngine
import LarderModelCoding
import LarderPlatform

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
    /// No lock is held while `body` runs: it may be slow, and it may call the cache.
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
    /// - Throws: ``LarderError/Code/conflict`` if another caller changed the entry in every attempt; the errors of
    ///   `CacheReading.value(_:forKey:fillCache:)` and `set(_:forKey:policy:tags:durability:)`, and errors of `body`.
    @discardableResult
    public func update<Value: Codable, Result>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, policy: EntryPolicy = .keep, tags: [String] = [],
        attempts: Int? = nil, durability: Durability? = nil, _ body: (inout Value?) throws -> Result
    ) throws -> Result {
        let key = try source.key(key, "update")
        try checkAttempts(attempts)
        var runs = UpdateAttempts(most: attempts, limitMilliseconds: Self.updateMilliseconds)
        while true {
            let record = try source.record(key, "update")
            var model = try record.flatMap { record throws(LarderError) in
                try source.decode(type, record, key, isReplaceable: true)
            }
            let result = try body(&model)
            guard let write = try source.write(model, in: record, key, policy, tags, durability) else { return result }
            if try perform(write) { return result }
            guard let rest = runs.rest() else { throw conflict(key, runs) }
            WorkThread.sleep(nanoseconds: rest)
        }
    }

    /// The time limit, in milliseconds, of an update without a given number of attempts.
    static let updateMilliseconds = 5_000

    func checkAttempts(_ attempts: Int?) throws(LarderError) {
        guard let attempts, attempts < 1 else { return }
        throw LarderError(
            .invalidArgument, "attempts is \(attempts), and must be at least 1", operation: "update", database: name)
    }

    func conflict(_ key: Key, _ attempts: UpdateAttempts) -> LarderError {
        LarderError(.conflict, attempts.conflict, operation: "update", database: name, key: key.description)
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
        try add(WholeCounter(number: step), try source.key(key, "increment"), durability).number
    }

    /// Like the call above, for integers of another type. The sum must fit into that type.
    @discardableResult
    public func increment<Value: FixedWidthInteger & Sendable>(
        _ key: some CacheKey, by step: Value, durability: Durability? = nil
    ) throws(LarderError) -> Value {
        try add(WholeCounter(number: step), try source.key(key, "increment"), durability).number
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
        try add(step, try source.key(key, "increment"), durability)
    }

    func add<Number: Counter>(_ step: Number, _ key: Key, _ durability: Durability?) throws(LarderError) -> Number {
        let outcome = try source.whileOpen("increment") { (_) throws(LarderError) in
            try source.database.commit([key], loading: .records, durability: durability ?? self.durability) { update in
                let previous = update.current(0)
                guard let number = previous.map({ $0.withPayload { Number(text: $0) } }) ?? Number.zero else {
                    return CounterOutcome<Number>.noNumber
                }
                guard let sum = number.sum(step) else { return .outOfRange }
                var text = sum.text
                text.withUTF8 { bytes in
                    let bytes = UnsafeRawBufferPointer(bytes)
                    update.put(
                        0, payload: bytes, rule: previous?.header.rule ?? .governed, grace: previous?.header.grace,
                        codec: previous?.header.codec ?? .json, tags: previous?.tags)
                }
                return .sum(sum)
            }
        }
        switch outcome {
        case .sum(let sum): return sum
        case .noNumber:
            throw LarderError(
                .decoding, "the value is not \(Number.kind)", operation: "increment", database: name,
                key: key.description)
        case .outOfRange:
            throw .invalid("the sum is not \(Number.kind)", "increment", name, key)
        }
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

enum CounterOutcome<Number> {
    case sum(Number)
    case noNumber
    case outOfRange
}

/// A number that is stored as text and can be incremented.
protocol Counter: Sendable {
    static var zero: Self { get }
    /// The kind of number, for messages.
    static var kind: String { get }
    /// Parses a number. Returns nil if the text is not a number of this kind.
    init?(text: UnsafeRawBufferPointer)
    /// Returns the sum of this number and `step`; nil if it cannot be represented.
    func sum(_ step: Self) -> Self?
    var text: String { get }
}

/// An integer of any width as a counter.
struct WholeCounter<Number: FixedWidthInteger & Sendable>: Counter {
    let number: Number

    static var zero: Self { Self(number: 0) }
    static var kind: String { CounterText.kind(Number.self) }

    init(number: Number) { self.number = number }

    init?(text bytes: UnsafeRawBufferPointer) {
        guard let number = CounterText.number(Number.self, bytes) else { return nil }
        self.number = number
    }

    func sum(_ step: Self) -> Self? {
        let (sum, overflows) = number.addingReportingOverflow(step.number)
        return overflows ? nil : Self(number: sum)
    }

    var text: String { number.description }
}

extension Double: Counter {
    static var kind: String { "a finite number" }

    init?(text bytes: UnsafeRawBufferPointer) {
        // Reject hexadecimal numbers and names such as `inf`, which Double's own parser accepts.
        let isDecimal = bytes.allSatisfy { $0 >= 0x30 && $0 <= 0x39 || "+-.eE".utf8.contains($0) }
        guard isDecimal, bytes.count <= 400, let text = String(validating: bytes, as: UTF8.self),
            let number = Double(text), number.isFinite
        else { return nil }
        self = number
    }

    func sum(_ step: Double) -> Double? {
        let sum = self + step
        return sum.isFinite ? sum : nil
    }

    /// The number as text, without `.0` after integers, as the daemon writes it.
    var text: String {
        Int(exactly: self).map(\.description) ?? description
    }
}
