import LarderEngine
import LarderModelCoding
import LarderPlatform

// Changes that depend on the stored value.

extension Cache {
    /// Reads an entry, lets `body` change it, and stores the result, in one step: if somebody else has changed the
    /// entry meanwhile, `body` runs again with the new value.
    ///
    /// ```swift
    /// try cache.update(Basket.self, forKey: "ana") { basket in
    ///     basket = basket ?? Basket()
    ///     basket?.items.append(item)
    /// }
    /// ```
    /// No lock is held while `body` runs: it may take its time and may call the cache.
    /// - Parameters:
    ///   - type: the model's type.
    ///   - key: the entry's key.
    ///   - policy: how long the result stays fresh. The default, ``EntryPolicy/keep``, keeps the entry's rule: a deadline of
    ///     its own stays; an entry that follows the database's policy counts as stored now, and its time begins anew.
    ///   - tags: as for `set(_:forKey:policy:tags:durability:)`. Without any, the entry keeps those that it has.
    ///   - attempts: how often `body` may run, at least 1; for less, `invalidArgument` is thrown. The default, nil,
    ///     stands for 64 times, and for more until 5 seconds have passed. Runs are separated by random rests that grow,
    ///     up to half a second, so that many who change one key all get their turn.
    ///   - durability: nil for ``CacheOptions/durability``.
    ///   - body: gets the model, or nil when there is no fresh entry, or one that is no such model, which
    ///     ``CacheOptions/onEvent`` reports. Leaves the model to store, or nil to remove the entry. May run several times, so
    ///     its side effects must allow that. When it throws, nothing is written.
    /// - Returns: what the last run of `body` returned.
    /// - Throws: ``LarderError/Code/conflict`` when somebody else changed the entry in every attempt; otherwise as
    ///   `CacheReading.value(_:forKey:fillCache:)` and `set(_:forKey:policy:tags:durability:)`, and what
    ///   `body` throws.
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

    /// How long an update without a number of attempts tries.
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

    /// Adds to an integer in one step; a key without a fresh entry counts as 0. The entry keeps its rule and its tags, and
    /// counts as stored now. The stored value is the decimal digits of the number, like in JSON and in commands of the daemon.
    /// - Returns: the sum.
    /// - Throws: ``LarderError/Code/decoding`` when the value is not an integer; ``LarderError/Code/invalidArgument``
    ///   when the sum is not an `Int`.
    @discardableResult
    public func increment(_ key: some CacheKey, by step: Int = 1, durability: Durability? = nil)
        throws(LarderError) -> Int
    {
        try add(WholeCounter(number: step), try source.key(key, "increment"), durability).number
    }

    /// Like the call above, for integers of another type: the sum must be one of that type too.
    @discardableResult
    public func increment<Value: FixedWidthInteger & Sendable>(
        _ key: some CacheKey, by step: Value, durability: Durability? = nil
    ) throws(LarderError) -> Value {
        try add(WholeCounter(number: step), try source.key(key, "increment"), durability).number
    }

    /// Adds to a number in one step; a key without a fresh entry counts as 0. The entry keeps its rule and counts as
    /// stored now.
    /// - Returns: the sum, as a `Double`.
    /// - Throws: ``LarderError/Code/decoding`` when the value is not a number; ``LarderError/Code/invalidArgument``
    ///   when the sum is not finite.
    @discardableResult
    public func increment(_ key: some CacheKey, by step: Double, durability: Durability? = nil)
        throws(LarderError) -> Double
    {
        try add(step, try source.key(key, "increment"), durability)
    }

    func add<Number: Counter>(_ step: Number, _ key: Key, _ durability: Durability?) throws(LarderError) -> Number {
        let outcome = try source.whileOpen("increment") { (_) throws(LarderError) in
            try source.database.commit([key], loading: true, durability: durability ?? self.durability) { update in
                let former = update.current(0)
                guard let number = former.map({ $0.withPayload { Number(text: $0) } }) ?? Number.zero else {
                    return CounterOutcome<Number>.noNumber
                }
                guard let sum = number.sum(step) else { return .outOfRange }
                var text = sum.text
                text.withUTF8 { bytes in
                    let bytes = UnsafeRawBufferPointer(bytes)
                    update.put(
                        0, payload: bytes, rule: former?.header.rule ?? .governed, grace: former?.header.grace,
                        codec: former?.header.codec ?? .json, tags: former?.tags)
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
            throw LarderError(
                .invalidArgument, "the sum is not \(Number.kind)", operation: "increment", database: name,
                key: key.description)
        }
    }
}

extension CacheSource {
    /// What an update has to write that found `record` and left `model`; nil if there is nothing to do.
    func write<Value: Encodable>(
        _ model: Value?, in record: Record?, _ key: Key, _ policy: EntryPolicy, _ tags: [String],
        _ durability: Durability?
    ) throws(LarderError) -> EntryWrite? {
        var action = EntryWrite.Action.remove
        if let model {
            let (payload, codec) = try encode(model, key)
            action = try put(payload, codec, key, policy, tags, keeping: record?.tags)
        } else if record == nil {
            return nil
        }
        return EntryWrite(key: key, action: action, condition: .unchanged(record), durability: durability)
    }
}

enum CounterOutcome<Number> {
    case sum(Number)
    case noNumber
    case outOfRange
}

/// A number that is stored as text and can be added to.
protocol Counter: Sendable {
    static var zero: Self { get }
    /// In words, for messages.
    static var kind: String { get }
    /// Nil for what is no such number.
    init?(text: UnsafeRawBufferPointer)
    /// Nil for a sum that is no such number.
    func sum(_ step: Self) -> Self?
    var text: String { get }
}

/// A whole number of any width as a counter.
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
        // Double's own parser also takes hexadecimal and names.
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

    /// Without `.0` behind whole numbers, as the daemon writes them.
    var text: String {
        Int(exactly: self).map(\.description) ?? description
    }
}
