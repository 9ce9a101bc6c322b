import LarderEngine

// Several models at one instant.

extension CacheSource {
    /// The models of several keys as they are at one instant, each decoded for this caller alone; nil where there is no
    /// fresh entry.
    func ownModels<Value: Decodable>(_ type: Value.Type, _ keys: [some CacheKey], fillCache: Bool)
        throws(LarderError) -> [Value?]
    {
        var values = [Value?](repeating: nil, count: keys.count)
        let keys = try checked(keys)
        var found = try hotRecords(keys, fillCache) { _, _ in false }
        if found == nil { found = try coldRecords(keys, fillCache: fillCache) }
        for (index, record) in found ?? [] {
            values[index] = try decode(type, record.record, keys[index])
        }
        return values
    }

    /// As ``ownModels(_:_:fillCache:)``, from their decoded forms where those are kept; the others are kept if their
    /// entries are hot.
    func sharedModels<Value: Decodable & Sendable>(_ type: Value.Type, _ keys: [some CacheKey], fillCache: Bool)
        throws(LarderError) -> [Value?]
    {
        guard keepsDecoded else { return try ownModels(type, keys, fillCache: fillCache) }
        var values = [Value?](repeating: nil, count: keys.count)
        let keys = try checked(keys)
        let id = ObjectIdentifier(type)
        var found = try hotRecords(keys, fillCache) { index, attachment in
            guard let model = attachment.value(of: id, madeBy: codecIdentity) else { return false }
            values[index] = model.assumingMemoryBound(to: Value.self).pointee
            return true
        }
        if found == nil { found = try coldRecords(keys, fillCache: fillCache) }
        for (index, record) in found ?? [] {
            values[index] = try decodedAndAttached(type, record.record, keys[index], version: record.version)
        }
        database.releaseDetached()
        return values
    }

    /// A fresh entry, and by what something can be attached to it; 0 where nothing can.
    private typealias Found = (record: Record, version: UInt64)

    private func checked(_ keys: [some CacheKey]) throws(LarderError) -> [Key] {
        // Nothing is read of no keys; what was closed says so all the same.
        if keys.isEmpty { _ = try hold("get") }
        var checked: [Key] = []
        checked.reserveCapacity(keys.count)
        for key in keys { checked.append(try self.key(key, "get")) }
        return checked
    }

    /// The fresh entries of keys by their places, if memory knows of all of them, or can be made to.
    /// - Parameter use: takes what is kept beside an entry; locks are held meanwhile. Where it does, the entry is left out.
    /// - Returns: nil where the disk has to be asked. Then `use` was not called.
    private func hotRecords(_ keys: [Key], _ fillCache: Bool, _ use: (Int, Attachment) -> Bool)
        throws(LarderError) -> [(Int, Found)]?
    {
        if keys.isEmpty { return [] }
        guard snapshot == nil else { return nil }
        if let found = try hotRecords(keys, use) { return found }
        // A read of one key keeps what it found, an entry or none; after that all are read at one instant. Where there is
        // no such memory, or not enough, the disk is asked for all of them.
        guard fillCache, database.attachmentBytesMax > 0 else { return nil }
        for key in keys {
            _ = try key.withBytes { bytes in
                Result { () throws(LarderError) in try read(bytes, "get") { _, _ in } }
            }.get()
        }
        return try hotRecords(keys, use)
    }

    private func hotRecords(_ keys: [Key], _ use: (Int, Attachment) -> Bool) throws(LarderError) -> [(Int, Found)]? {
        return try whileOpen("get") { (engine) throws(LarderError) in
            var found: [(Int, Found)] = []
            var ticket = CommitTicket.none
            let read = try database.readHot(keys, now: database.now(), ticket: &ticket) { index, entry in
                guard let entry else { return }
                if let attachment = entry.attachment, use(index, attachment) { return attachment.touch() }
                found.append((index, (Record(entry.header, payload: entry.payload), entry.version)))
            }
            guard case .hit = read else { return nil }
            try engine.pipeline.wait(for: ticket)
            return found
        }
    }

    private func coldRecords(_ keys: [Key], fillCache: Bool) throws(LarderError) -> [(Int, Found)] {
        var found: [(Int, Found)] = []
        for (index, record) in try records(keys, fillCache: fillCache).enumerated() {
            if let record { found.append((index, (record, 0))) }
        }
        return found
    }
}
