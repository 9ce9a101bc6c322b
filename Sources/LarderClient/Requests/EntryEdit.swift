// Changes of single properties of stored models, for the calls `edit` of both clients.

import LarderJSONCoding
import LarderRESP

/// The changes that a call of `edit` makes. The daemon makes them, with the command EDIT.
///
/// A property may be stored under another name than its own, and some changes may have a result that is no model. Until
/// the places are verified, and for such changes, the client therefore makes the changes itself, and stores the result
/// if the entry is still the same.
struct EntryEdit<Model: Codable> {
    let key: [UInt8]
    private let edits: ModelEdits<Model>
    private let database: String

    init(
        _ key: [UInt8], _ codec: ModelCodec, _ database: String, _ body: (inout ModelEdits<Model>) throws -> Void
    ) throws {
        var edits = ModelEdits<Model>(codec)
        try body(&edits)
        (self.key, self.edits, self.database) = (key, edits, database)
        try checking { try edits.check() }
    }

    private func checking(_ body: () throws -> Void) throws(LarderClientError) {
        do { try body() } catch {
            throw failure(.invalidArgument, (error as? ModelEdits<Model>.Impossible)?.message ?? "\(error)")
        }
    }

    var request: Request<[UInt8]> {
        let words = wordList("EDIT") + [key] + edits.edits.flatMap(\.words) + wordList("RETURN", "$")
        return Request(words, key: key, expects: "the model") { $0.bytes }
    }

    // MARK: In this process

    /// Whether the model must be checked before it is stored.
    var mustBeTried: Bool { edits.mustBeTried }

    /// Compares the places with the properties of the stored model.
    func verified(before text: [UInt8]?) throws(LarderClientError) -> Model? {
        guard let text else { throw missing }
        var model: Model?
        try checking { model = try text.withUnsafeBytes { try edits.verified(before: $0, storedAs: .raw) } }
        return model
    }

    /// Makes the changes in this process, so that the model can be checked before it is stored.
    func applied(to previous: [UInt8]?) throws(LarderClientError) -> [UInt8] {
        guard let previous else { throw missing }
        do throws(JSONEdit.Failure) {
            let changed = try previous.withUnsafeBufferPointer { (text) throws(JSONEdit.Failure) in
                try JSONEdit.apply(edits.edits, to: UnsafeRawBufferPointer(text))
            }
            return changed ?? previous
        } catch {
            if case .step(let number, let reason) = error {
                throw failure(.invalidArgument, "edit \(number): \(reason)")
            }
            throw failure(.decode, "the value is not JSON")
        }
    }

    /// Compares and checks a model, and returns the entry that stores it.
    func entry(
        _ model: Model, in text: [UInt8], after previous: Model?, _ codec: ModelCodec
    ) throws(LarderClientError) -> NewEntry {
        try verify(model, in: text, after: previous)
        do { try codec.verify(model) } catch { throw RemoteCoding.failure(error, Model.self, codec, key) }
        return try NewEntry(bytes: text, key, .keep, [], .json)
    }

    // MARK: Replies

    /// Compares the places with the properties of the model that was decoded from `text`.
    func verify(_ model: Model, in text: [UInt8], after previous: Model? = nil) throws(LarderClientError) {
        try checking { try text.withUnsafeBytes { try edits.verify(model, in: $0, after: previous) } }
    }

    /// The error for a reply without a model, which EDIT never sends.
    var undecoded: LarderClientError { .unexpectedReply(to: "EDIT", "the model", key: printableKey(key)) }

    /// Converts the daemon's error for a missing entry.
    func failure(_ error: LarderClientError) -> LarderClientError {
        guard error.serverText == "ERR could not perform this operation on a key that doesn't exist" else {
            return error
        }
        return missing
    }

    private var missing: LarderClientError { failure(.noSuchEntry, "there is no fresh entry") }

    private func failure(_ code: LarderClientError.Code, _ message: String) -> LarderClientError {
        LarderClientError(code, message, operation: "EDIT", database: database, key: printableKey(key))
    }
}
