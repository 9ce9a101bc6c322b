import LarderModelCoding
import LarderVocabulary

/// A property that refers to a model under another key of the same database. It is stored as the key, so the model is
/// not stored twice, and reading it later returns the model of that time.
///
/// ```swift
/// struct Comment: Codable { var text: String; var post: Reference<Post> }
///
/// let comments = try await cache.query(Comment.self).sorted(by: .stored, .reverse).limit(10).including(\.post).values()
/// print(comments[0].post.model?.title ?? "not cached")
/// ```
/// A reference may be to a missing entry: its `model` is nil. To remove the comments together with their post, store
/// them with a tag that is the post's key, and purge that tag.
///
/// References are equal if their keys are.
public struct Reference<Model: Codable & Sendable>: Codable, Hashable, Sendable {
    /// The key of the model's entry.
    public let key: String
    /// One model or none: in an array, because a model may refer to models of its own type.
    fileprivate var loaded: [Model] = []
    /// The model, if `including` has loaded it and it was cached. Not stored.
    public var model: Model? { loaded.first }

    /// Refers to the entry of a key.
    public init(_ key: String) { self.key = key }

    public init(from decoder: any Decoder) throws { self.init(try decoder.singleValueContainer().decode(String.self)) }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(key)
    }

    public static func == (left: Reference, right: Reference) -> Bool { left.key == right.key }
    public func hash(into hasher: inout Hasher) { hasher.combine(key) }
}

/// The references of one property, which a query loads.
struct Inclusion<Model>: Sendable {
    /// The keys of a model's references.
    let keys: @Sendable (Model) -> [String]
    /// Sets the models of the references.
    let load: @Sendable (inout Model, StoredModels) throws -> Void
}

/// The stored bytes of an entry, and their codec.
package struct StoredText: Sendable {
    let bytes: [UInt8]
    let codec: Codec

    package init(_ bytes: [UInt8], _ codec: Codec) { (self.bytes, self.codec) = (bytes, codec) }
}

/// The entries of the references of some rows.
struct StoredModels {
    struct Undecodable: Error {
        let type: any Any.Type
        let key: String
        let reason: any Error
    }

    let texts: [String: StoredText]
    let codec: ModelCodec
    let omitsUndecodable: Bool

    fileprivate func load<Model>(_ reference: inout Reference<Model>) throws {
        guard let text = texts[reference.key] else { return }
        do {
            let model = try text.bytes.withUnsafeBytes { try codec.decode(Model.self, $0, storedAs: text.codec) }
            reference.loaded = [model]
        } catch {
            if !omitsUndecodable { throw Undecodable(type: Model.self, key: reference.key, reason: error) }
        }
    }
}

extension ModelQuery {
    /// Loads the models that a property of the rows refers to, for `values()` and `page()`: those of all rows in one
    /// call, after the rows. References to missing entries stay nil, and so do all in filters, `select`, groups and
    /// predicates.
    public func including<Target>(_ property: any WritableKeyPath<Model, Reference<Target>> & Sendable) -> Self {
        including {
            [$0[keyPath: property].key]
        } load: {
            try $1.load(&$0[keyPath: property])
        }
    }

    /// Like the call above, for an optional reference.
    public func including<Target>(_ property: any WritableKeyPath<Model, Reference<Target>?> & Sendable) -> Self {
        including {
            $0[keyPath: property].map { [$0.key] } ?? []
        } load: { model, stored in
            try model[keyPath: property].map { reference in
                var reference = reference
                try stored.load(&reference)
                model[keyPath: property] = reference
            }
        }
    }

    /// Like the call above, for an array of references.
    public func including<Target>(_ property: any WritableKeyPath<Model, [Reference<Target>]> & Sendable) -> Self {
        including {
            $0[keyPath: property].map(\.key)
        } load: {
            for index in $0[keyPath: property].indices { try $1.load(&$0[keyPath: property][index]) }
        }
    }

    private func including(
        _ keys: @escaping @Sendable (Model) -> [String],
        load: @escaping @Sendable (inout Model, StoredModels) throws -> Void
    ) -> Self { adding { $0.add(Inclusion(keys: keys, load: load)) } }
}

extension QueryPages {
    /// The keys that the models refer to, each once, if the query includes them.
    var referencedKeys: [String] {
        guard !query.inclusions.isEmpty else { return [] }
        return Array(Set(models.flatMap { model in query.inclusions.flatMap { $0.keys(model) } }))
    }

    /// Sets the models of references.
    mutating func include(_ keys: [String], _ texts: [StoredText?]) throws(Failure) {
        let found = Dictionary(zip(keys, texts).compactMap { key, text in text.map { (key, $0) } }) { $1 }
        let runner = query.runner
        let stored = StoredModels(
            texts: found, codec: runner.codec, omitsUndecodable: runner.omitsUndecodable)
        do {
            for index in models.indices {
                for inclusion in query.inclusions { try inclusion.load(&models[index], stored) }
            }
        } catch {
            guard let error = error as? StoredModels.Undecodable else { return }
            throw runner.failure(.undecodable(error.type, key: Array(error.key.utf8), error.reason))
        }
    }
}
