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
            case .index:
                "declare the index with the name in the JSON, as in at: \"name\"; \(EditPath.unnamed), and no index"
            case .query: "pass the name in the JSON, as in at: \"name\"; \(EditPath.unnamed): use filter { }"
            case .predicate:
                "use where(\"name\", value), with the name in the JSON; \(EditPath.unnamed): use filter { }"
            case .selection: "read values()"
            }
        }
    }

    package final class Check: Sendable {
        private let path: EditPath
        fileprivate let id: String
        private let reader: Reader
        /// The property, for the text of the error.
        private let name: String
        /// Returns the JSON of the property; nil if the model is of another type, or the value cannot be encoded.
        private let json: @Sendable (Any, ModelCodec) throws -> JSONText?
        /// Returns the text of an error if the reader cannot use the JSON of the property.
        private let problem: (@Sendable (JSONText) -> String?)?
        /// How many models without a value were compared.
        fileprivate let absences = Atomic<Int>(0)

        /// - Parameters:
        ///   - property: consists of stored properties.
        ///   - outer: leads from the model to the value that has the property. Optionals are unwrapped.
        /// - Returns: nil for a key path with `!`, which is never applied.
        package init?(
            _ path: EditPath, _ property: AnyKeyPath, in outer: [AnyKeyPath] = [], _ reader: Reader,
            _ problem: (@Sendable (JSONText) -> String?)? = nil
        ) {
            if PropertyPath.unwraps(property) { return nil }
            (self.path, self.reader, self.problem) = (path, reader, problem)
            name = outer.first.map { "\\\(type(of: $0).rootType).\(path.text)" } ?? "\(property)"
            id = "\(name) \(path.text)"
            // Safe: a key path of stored properties is immutable, and contains no other values.
            nonisolated(unsafe) let steps = outer + [property]
            json = { model, codec in
                var value: Any? = model
                for step in steps { value = value.flatMap { $0[keyPath: step] } }
                return try (value as? any Encodable).flatMap { try codec.json(of: $0) }
            }
        }

        fileprivate enum Outcome: Equatable {
            case same
            case different(String)
            case absent, otherType
        }

        /// Compares the property of a model with its encoded form.
        fileprivate func outcome(_ model: some Encodable, _ payload: Payload, _ codec: ModelCodec) throws -> Outcome {
            guard let property = try json(model, codec) else { return .otherType }
            return payload.withBytes { bytes in
                let stored = path.value(in: bytes).flatMap { text in
                    text.withUnsafeBytes { try? JSONText(parsing: $0) }
                }
                if let stored, stored.isEqual(to: property) || stored.hasSameElements(as: property) {
                    return problem?(stored).map { .different($0) } ?? .same
                }
                return stored == nil && property.isNull ? .absent : .different(mismatch(in: bytes))
            }
        }

        private func mismatch(in bytes: UnsafeRawBufferPointer) -> String {
            let field = printableKey(path.text.utf8)
            let text = "\(reader.rawValue) reads the field '\(field)', which does not hold \(name); "
            guard let whole = singleValue(in: bytes) else { return text + reader.remedy }
            let value = path.steps.last == "key" ? "Reference(\"…\")" : "value"
            let remedy = reader == .index ? "index that property" : "use where(\\.\(whole), \(value))"
            return text + "'\(whole)' is stored as one value: \(remedy)"
        }

        /// The beginning of the path that leads to a value without members.
        private func singleValue(in text: UnsafeRawBufferPointer) -> String? {
            for count in path.steps.indices.dropFirst() {
                let outer = EditPath(steps: Array(path.steps.prefix(count)))
                guard let first = outer.value(in: text)?.first else { return nil }
                if !"{[".utf8.contains(first) { return printableKey(outer.text.utf8) }
            }
            return nil
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

    /// Ends the checks of indexes other than these.
    package func keep(_ kept: [Check]) {
        let ids = Set(kept.map(\.id))
        end { !ids.contains($0.id) }
    }

    private func end(_ hasEnded: (Check) -> Bool) {
        checks.withLock { checks in
            checks.removeAll(where: hasEnded)
            isPending.store(!checks.isEmpty, ordering: .releasing)
        }
    }

    /// Compares a model with its encoded form. Costs nothing after the first models of each type.
    func verify(_ model: some Encodable, _ payload: Payload, _ codec: ModelCodec) throws {
        guard isPending.load(ordering: .acquiring) else { return }
        // No lock is held here, because code of the model runs.
        var done: Set<String> = []
        for check in checks.withLock({ $0 }) {
            switch try check.outcome(model, payload, codec) {
            case .same: done.insert(check.id)
            case .different(let text): throw Mismatch(text: text)
            case .absent:
                if check.absences.wrappingAdd(1, ordering: .relaxed).newValue > Self.absencesMax {
                    done.insert(check.id)
                }
            case .otherType: break
            }
        }
        if !done.isEmpty { end { done.contains($0.id) } }
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
            if case .different(let text) = outcome { throw Mismatch(text: text) }
            queried.withLock { queried in
                if outcome == .same { queried[check.id] = Self.absencesMax } else { queried[check.id, default: 0] += 1 }
            }
        }
    }
}
