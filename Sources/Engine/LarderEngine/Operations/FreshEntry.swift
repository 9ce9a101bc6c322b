/// A fresh entry in memory, while the lock of its shard is held. Valid only inside the closure that receives it.
///
/// Contains no counted references, because counting them costs more than a lookup.
package struct FreshEntry {
    package let header: RecordHeader
    package let record: UnsafeRawBufferPointer
    /// The object attached to the entry; nil if there is none.
    package let attachment: Unmanaged<Attachment>?
    private let hash: Int
    private let now: Int64
    private let database: Unmanaged<Database>
    private let shard: Unmanaged<Shard>

    @inline(__always)
    init(
        _ database: Database, _ shard: Unmanaged<Shard>, _ entry: EntryPointer, _ header: RecordHeader,
        _ record: UnsafeRawBufferPointer, hash: Int, now: Int64
    ) {
        self.database = .passUnretained(database)
        (self.shard, self.header, self.record) = (shard, header, record)
        attachment = entry.head.pointee.attachment
        (self.hash, self.now) = (hash, now)
    }

    package var payload: UnsafeRawBufferPointer { header.payload(of: record) }

    /// When the entry expires, in milliseconds since 1970; nil for never.
    package var deadline: Int64? { database._withUnsafeGuaranteedRef { $0.applied.rules.deadline(header) } }

    /// Whether the entry expires so soon that it should be fetched again.
    package var endsSoon: Bool {
        database._withUnsafeGuaranteedRef { database in
            shard._withUnsafeGuaranteedRef { shard in
                database.applied.rules.endsSoon(
                    header, now: now, lastRefresh: shard.leases?.lastDuration(hash) ?? 0)
            }
        }
    }

    /// Whether a ``FetchRequest`` made now is answered with this entry, and grants no lease.
    package func answersFetch(maxAge: Int64?) -> Bool { FetchRequest.isYoung(header.storedAt, maxAge, now) && !endsSoon }
}
