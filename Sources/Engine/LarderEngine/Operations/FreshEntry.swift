/// A fresh entry in memory, while the lock of its shard is held. Valid only inside the closure that receives it.
///
/// Contains no counted references, because counting them costs more than a lookup.
package struct FreshEntry {
    package let record: RecordView
    /// The object attached to the entry; nil if there is none.
    package let attachment: Unmanaged<Attachment>?
    let hash: Int
    let now: Int64
    let database: Unmanaged<Database>

    package var header: RecordHeader { record.header }
    package var payload: UnsafeRawBufferPointer { record.payload }

    /// When the entry expires, in milliseconds since 1970; nil for never.
    package var deadline: Int64? { database._withUnsafeGuaranteedRef { $0.applied.rules.deadline(header) } }

    package var rules: FreshnessRules { database._withUnsafeGuaranteedRef { $0.applied.rules } }

    /// Whether the entry expires so soon that it should be fetched again.
    package var endsSoon: Bool {
        database._withUnsafeGuaranteedRef { database in
            database.shards.with(hash) { shard in
                database.applied.rules.endsSoon(header, now: now, lastRefresh: shard.leases?.lastDuration(hash) ?? 0)
            }
        }
    }

    /// Whether a ``FetchRequest`` made now is answered with this entry, without a lease.
    package func answersFetch(maxAge: Int64?) -> Bool {
        FetchRequest.isYoung(header.storedAt, maxAge, now) && !endsSoon
    }
}

/// Attachments are objects that users of the engine attach to entries in memory.
///
/// An attachment is dropped when any part of the process writes, removes, purges or evicts its entry, or finds it
/// damaged. The attachment of an expired entry is not returned. All attachments together, including those of entries
/// that cannot be evicted, take at most half of the memory budget.
///
/// The next ``releaseDetached()`` releases the dropped attachments. They are not released immediately, because locks
/// are held when they are dropped.
extension Attachment {
    /// Attaches the object to the entry of a key, replacing any earlier attachment. Does nothing if the entry has
    /// changed or left memory, or the attachment is too large.
    /// - Parameter version: the entry's version from ``Database/read(_:now:_:below:fillCache:ticket:holding:_:)``.
    package func attach(to key: Key, version: UInt64, in database: Database) {
        database.shards.withLocked(key.hash) { shard in
            if let entry = shard.find(key) { shard.attach(self, to: entry, version: version) }
        }
    }
}

extension Database {
    /// The maximum size of an attachment in bytes, a fraction of the memory budget; 0 without a budget.
    package var attachmentBytesMax: Int { context.memory.largestBytes }

    /// Releases the larder's dropped attachments. Call it after an operation, with no lock held, because the
    /// deinitializers of attachments may call the engine. Costs one atomic load if there are none.
    package func releaseDetached() { context.memory.released.release() }
}
