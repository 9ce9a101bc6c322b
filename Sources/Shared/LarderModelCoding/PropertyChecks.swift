import LarderJSONCoding
import LarderPlatform
import Synchronization

/// Compares the fields that indexes and queries read with the properties of models: on the wrong field, nothing would be
/// found.
///
/// Thread-safe.
package final class PropertyChecks: Sendable {
    /// What reads a field.
    package enum Reader: String, Sendable {
        case index = "an index"
        case query = "the query"
        case predicate = "the predicate"
        case selection = "the selection"

        fileprivate var remedy: String {
            switch self {
            case .index: "declare the index with the name in the JSON, as in at: \"name\""
            case .query: "pass the name in the JSON, as in at: \"name\""
            case .predicate: "use where(\"name\", value), with the name in the JSON"
            case .selection: "read values()"
            }
        }
    }

    package final class Check: Sendable {
        private let path: EditPath
        fileprivate let id: String
        /// The text of the error.
        fileprivate let mismatch: String
        /// Returns the JSON of the property; nil if the model is of another type, or the value cannot be encoded.
        private let json: @Sendable (Any, ModelCodec) throws -> JSONText?
        /// How many models without a value were compared.
        fileprivate let absences = Atomic<Int>(0)

        /// - Parameter property: consists of stored properties.
        package init(_ path: EditPath, _ property: AnyKeyPath, _ reader: Reader) {
            self.path = path
            id = "\(property) \(path.text)"
            mismatch =
                "\(reader.rawValue) reads the field '\(printableKey(path.text.utf8))', which does not hold \(property); "
                + reader.remedy
            // Safe: a key path of stored properties is immutable, and contains no other values.
            nonisolated(unsafe) let property = property
            json = { model, codec in
                guard let value = model[keyPath: property] as? any Encodable else { return nil }
                return try codec.json(of: value)
            }
        }

        fileprivate enum Outcome { case same, different, absent, otherType }

        /// Compares the property of a model with its encoded form.
        fileprivate func outcome(_ model: some Encodable, _ payload: Payload, _ codec: ModelCodec) throws -> Outcome {
            guard let property = try json(model, codec) else { return .otherType }
            let stored = payload.withBytes { bytes in
                path.value(in: bytes).flatMap { text in text.withUnsafeBytes { try? JSONText(parsing: $0) } }
            }
            guard let stored else { return property.isNull ? .absent : .different }
            return stored.isEqual(to: property) || stored.hasSameElements(as: property) ? .same : .different
        }
    }

    /// The text of an error: a field does not hold the property.
    package struct Mismatch: Error {
        package let text: String
    }

    private let checks = Locked<[Check]>([])
    private let isPending = Atomic<Bool>(false)
    /// How many models without a value the checks of queries have compared, by their IDs; the maximum after a value.
    private let queried = Locked<[String: Int]>([:])
    /// A check of an optional property ends after so many models in which it is nil.
    private static let absencesMax = 64

    package init() {}

    // MARK: Indexes

    package func add(_ new: [Check]) {
        guard !new.isEmpty else { return }
        checks.withLock { $0 += new }
        isPending.store(true, ordering: .releasing)
    }

    /// Compares a model with its encoded form. Costs nothing after the first models of each type.
    func verify(_ model: some Encodable, _ payload: Payload, _ codec: ModelCodec) throws {
        guard isPending.load(ordering: .acquiring) else { return }
        // No lock is held here, because code of the model runs.
        var done: Set<String> = []
        for check in checks.withLock({ $0 }) {
            switch try check.outcome(model, payload, codec) {
            case .same: done.insert(check.id)
            case .different: throw Mismatch(text: check.mismatch)
            case .absent:
                if check.absences.wrappingAdd(1, ordering: .relaxed).newValue > Self.absencesMax {
                    done.insert(check.id)
                }
            case .otherType: break
            }
        }
        if done.isEmpty { return }
        checks.withLock { checks in
            checks.removeAll { done.contains($0.id) }
            isPending.store(!checks.isEmpty, ordering: .releasing)
        }
    }

    // MARK: Queries

    /// Returns the checks of a query that have not ended.
    package func unfinished(_ checks: [Check]) -> [Check] {
        if checks.isEmpty { return [] }
        return queried.withLock { queried in checks.filter { queried[$0.id, default: 0] < Self.absencesMax } }
    }

    /// Compares a stored model, encoded again, with the fields that a query reads.
    /// - Parameter model: nil if none could be read.
    package func verify(_ checks: [Check], _ model: (some Encodable)?, _ codec: ModelCodec) throws(Mismatch) {
        let payload = model.flatMap { try? codec.encodeModel($0) }
        for check in checks {
            var outcome = Check.Outcome.absent
            if let model, let payload { outcome = (try? check.outcome(model, payload, codec)) ?? .absent }
            if outcome == .different { throw Mismatch(text: check.mismatch) }
            queried.withLock { queried in
                if outcome == .same { queried[check.id] = Self.absencesMax } else { queried[check.id, default: 0] += 1 }
            }
        }
    }
}
