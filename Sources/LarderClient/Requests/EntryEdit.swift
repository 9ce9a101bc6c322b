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

    private func checking<Result>(_ body: () throws -> Result) throws(LarderClientError) -> Result {
        do { return try body() } catch {
            let reason = error as? ModelEdits<Model>.Impossible
            throw failure(
                reason?.isOfDecoding == true ? .decode : .invalidArgument, reason?.message ?? "\(error)",
                reason?.underlying)
        }
    }

    var request: Request<[UInt8]> {
        let words = wordList("EDIT") + [key] + edits.edits.flatMap(\.words) + wordList("RETURN", "$")
        return Request(words, key: key, expects: "the model") { $0.bytes }
    }

    // MARK: In this process

    /// Whether the model must be checked before it is stored.
    var mustBeTried: Bool { edits.mustBeTried }

    /// Makes the changes in this process, and checks the model before it is stored.
    /// - Parameter previous: the stored value; nil if there is none.
    /// - Returns: the model, and the entry that stores it; nil if nothing is changed.
    func result(for previous: [UInt8]?, _ codec: ModelCodec) throws(LarderClientError) -> (Model, NewEntry?) {
        guard let previous else { throw missing }
        let (model, text) = try checking { try previous.withUnsafeBytes { try edits.result(of: $0, storedAs: .json) } }
        do { try codec.verify(model) } catch { throw RemoteCoding.failure(error, Model.self, codec, key, "EDIT") }
        guard let text, text != previous else { return (model, nil) }
        return (model, try NewEntry(bytes: text, key, .keep, [], .json))
    }

    // MARK: Replies

    /// Decodes the reply, and compares the places with the properties of the model.
    func model(in text: [UInt8], _ codec: ModelCodec) throws(LarderClientError) -> Model {
        try LarderClientError.naming(database) { () throws(LarderClientError) in
            do throws(LarderClientError) {
                let model = try RemoteCoding.decode(Model.self, from: text, codec, storedAs: .json, key: key, "EDIT")
                try checking { try text.withUnsafeBytes { try edits.verify(model, in: $0) } }
                return model
            } catch {
                throw failure(error.code, error.message + "; the edit was stored", error.underlying)
            }
        }
    }

    /// Converts the daemon's error for a missing entry.
    func failure(_ error: LarderClientError) -> LarderClientError {
        error.serverText == "ERR could not perform this operation on a key that doesn't exist" ? missing : error
    }

    private var missing: LarderClientError { failure(.noSuchEntry, "there is no fresh entry") }

    private func failure(
        _ code: LarderClientError.Code, _ message: String, _ underlying: (any Error)? = nil
    ) -> LarderClientError {
        LarderClientError(
            code, message, operation: "EDIT", database: database, key: printableKey(key), underlying: underlying)
    }
}
