// What the calls of a blocking client share: performing requests, and converting models.

import LarderWire

extension BlockingLarderClient {
    // MARK: Requests

    /// Returns the kind of the server. Costs a round trip the first time.
    func server() throws(LarderClientError) -> ServerKind {
        if let server = session.knownServer { return server }
        var server = ServerKind()
        let refusal = try session.perform([wordList("POLICY")], operation: "POLICY")[0].errorMessage
        server.isLarder = refusal.map { !Handshake.isUnknownCommand($0) } ?? true
        session.knownServer = server
        return server
    }

    /// Performs one request. An error of the server is thrown.
    func perform<Result>(_ request: Request<Result>) throws(LarderClientError) -> Result {
        do throws(LarderClientError) {
            let reply = try session.perform([request.words], operation: request.name)[0]
            let result = try request.result(of: reply)
            request.noteWrites(reply, in: session, name)
            return result
        } catch {
            throw error.about(name)
        }
    }

    /// Performs several requests in one round trip. Returns a result or an error for each of them.
    func performAll<Result>(_ requests: [Request<Result>]) throws(LarderClientError)
        -> [Swift.Result<Result, LarderClientError>]
    {
        try named { () throws(LarderClientError) in
            let replies = try session.perform(requests.map(\.words), operation: requests.first?.name ?? "pipeline")
            return Request.results(of: requests, replies, name)
        }
    }

    /// Performs a request whose form depends on the kind of the server. The client assumes larderd until the server
    /// refuses the request.
    func perform<Result>(
        _ request: (ServerKind) throws(LarderClientError) -> Request<Result>
    ) throws(LarderClientError) -> Result {
        try named { () throws(LarderClientError) in
            do throws(LarderClientError) {
                return try perform(try request(session.knownServer ?? ServerKind()))
            } catch {
                guard error.code == .server, session.knownServer == nil, try !server().isLarder else { throw error }
                return try perform(try request(try server()))
            }
        }
    }

    /// Adds the database's name to errors of `body`.
    func named<Result>(_ body: () throws(LarderClientError) -> Result) throws(LarderClientError) -> Result {
        try LarderClientError.naming(name, body)
    }

    // MARK: Models

    /// Decodes stored bytes. Tries the likely codec first, and requests the entry's codec from the daemon if that
    /// fails.
    func decoded<Value: Decodable>(_ type: Value.Type, _ bytes: [UInt8]?, _ key: [UInt8])
        throws(LarderClientError) -> Value?
    {
        guard let bytes else { return nil }
        if let model = RemoteCoding.decodeByGuess(type, from: bytes, codec) { return model }
        return try named { () throws(LarderClientError) in
            let stored = try server().isLarder ? try info(forKey: key)?.codec : nil
            return try RemoteCoding.decode(type, from: bytes, codec, reported: stored, key: key, "GET")
        }
    }

    /// Decodes stored bytes. Returns nil if that fails: the caller then makes a new value.
    func decodable<Value: Decodable>(_ type: Value.Type, _ bytes: [UInt8]?, _ key: [UInt8])
        throws(LarderClientError) -> Value?
    {
        do throws(LarderClientError) {
            return try decoded(type, bytes, key)
        } catch {
            guard error.code == .decode else { throw error }
            return nil
        }
    }

    /// Encodes a model, and validates the options with which it is stored.
    func newEntry(_ value: some Encodable, _ key: [UInt8], _ policy: EntryPolicy = .database, _ tags: [String] = [])
        throws(LarderClientError) -> NewEntry
    {
        try named { () throws(LarderClientError) in try NewEntry(value, codec, key, policy, tags) }
    }

    /// Stores an entry; parameters as for ``NewEntry/request(for:if:keepsTags:)``.
    /// - Returns: whether the condition held, so that the entry was stored.
    @discardableResult
    func put(_ entry: NewEntry, if condition: [[UInt8]] = []) throws(LarderClientError) -> Bool {
        try perform { (server) throws(LarderClientError) in try entry.request(for: server, if: condition) }
    }

    /// If the stored value is still `previous`, stores an entry, or removes the key if the entry is nil.
    /// - Returns: whether the stored value was still `previous`, so that the change was made.
    func exchange(_ previous: [UInt8]?, for entry: NewEntry?, _ key: [UInt8]) throws(LarderClientError) -> Bool {
        let server = try server()
        let request = try named { () throws(LarderClientError) in
            try NewEntry.replacing(previous, with: entry, key, for: server)
        }
        return if let request { try perform(request) } else { true }
    }
}
