import LarderJSONCoding
import LarderPlatform
import Synchronization

/// Compares the fields that indexes read with the properties of the first models that are stored: an index on the wrong
/// field would find nothing.
///
/// Thread-safe.
package final class PropertyChecks: Sendable {
    package final class Check: Sendable {
        let path: EditPath
        let id: String
        /// The text of the error.
        let mismatch: String
        /// Returns the JSON of the property; nil if the model is of another type.
        let json: @Sendable (any Encodable, ModelCodec) throws -> JSONText?
        /// How many models without a value were compared.
        let absences = Atomic<Int>(0)

        package init<Model: Codable & SendableMetatype, Value: Encodable & SendableMetatype>(
            _ path: EditPath, _ property: any KeyPath<Model, Value> & Sendable
        ) {
            self.path = path
            id = "\(property) \(path.text)"
            mismatch =
                "an index reads the field '\(printableKey(path.text.utf8))', which does not hold \(property); "
                + "declare the index with the name in the JSON, as in at: \"name\""
            json = { model, codec in
                guard let model = model as? Model else { return nil }
                return try codec.json(of: model[keyPath: property])
            }
        }
    }

    /// The text of an error: the index reads a field that does not hold the property.
    struct Mismatch: Error {
        let text: String
    }

    private let checks = Locked<[Check]>([])
    private let isPending = Atomic<Bool>(false)
    /// A check of an optional property ends after so many models in which it is nil.
    private static let absencesMax = 64

    package init() {}

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
            guard let property = try check.json(model, codec) else { continue }
            let stored = payload.withBytes { bytes in
                check.path.value(in: bytes).flatMap { text in text.withUnsafeBytes { try? JSONText(parsing: $0) } }
            }
            if let stored, stored.isEqual(to: property) || stored.hasSameElements(as: property) {
                done.insert(check.id)
            } else if stored == nil, property.isNull {
                if check.absences.wrappingAdd(1, ordering: .relaxed).newValue > Self.absencesMax {
                    done.insert(check.id)
                }
            } else {
                throw Mismatch(text: check.mismatch)
            }
        }
        if done.isEmpty { return }
        checks.withLock { checks in
            checks.removeAll { done.contains($0.id) }
            isPending.store(!checks.isEmpty, ordering: .releasing)
        }
    }
}
