import Synchronization

/// What a user of the engine keeps beside an entry in memory: something that was made of the value with some effort. Made
/// as an ``Attached``.
///
/// Constant for its user. The links belong to the table or the queue that holds the attachment, and are read and written
/// with the lock of its shard held, or by the one thread that has taken it out of the queue.
package class Attachment {
    /// The bytes that it takes, as far as its maker knows. They count against the memory budget.
    package let byteCount: Int
    private let type: ObjectIdentifier
    /// Held, so that no other object gets its address.
    private let maker: AnyObject?
    /// To a value of that type.
    private let value: UnsafeRawPointer
    /// The entry that it belongs to; nil when the entry has let it go.
    @exclusivity(unchecked) fileprivate(set) var entry: EntryPointer?
    /// Whether it was asked for since the last look.
    @exclusivity(unchecked) fileprivate var wasRead = false
    @exclusivity(unchecked) fileprivate var newer: Unmanaged<Attachment>?
    @exclusivity(unchecked) fileprivate var older: Unmanaged<Attachment>?

    fileprivate init(_ type: Any.Type, _ value: UnsafeRawPointer, _ maker: AnyObject?, byteCount: Int) {
        self.byteCount = max(0, byteCount)
        self.type = ObjectIdentifier(type)
        self.value = value
        self.maker = maker
    }

    /// Where the value is, if it is of this very type and was made by this maker; valid while the attachment is there. The
    /// generic subclass is not mentioned: to look its metadata up takes longer than the comparison.
    package final func value(of type: ObjectIdentifier, madeBy maker: AnyObject?) -> UnsafeRawPointer? {
        self.type == type && self.maker === maker ? value : nil
    }

    /// Notes that it was asked for. Nothing is written where that is known.
    package final func touch() { if !wasRead { wasRead = true } }
}

/// Owns the value of an ``Attachment``.
package final class Attached<Value>: Attachment {
    private let place: UnsafeMutablePointer<Value>

    /// - Parameters:
    ///   - maker: tells values of one type from each other that were made in several ways.
    ///   - outerBytes: what the value takes besides its own inline form.
    package init(_ value: Value, madeBy maker: AnyObject?, outerBytes: Int) {
        place = .allocate(capacity: 1)
        place.initialize(to: value)
        super.init(
            Value.self, UnsafeRawPointer(place), maker,
            byteCount: Self.ownBytes + MemoryLayout<Value>.stride + outerBytes)
    }

    /// The object itself, and what the allocator takes for it and for the value's place.
    private static var ownBytes: Int { 160 }

    deinit {
        place.deinitialize(count: 1)
        place.deallocate()
    }
}

/// The attachments of one table, the newest at one end. Single owner: the lock of the table's shard guards it.
struct AttachmentList {
    private var newest: Unmanaged<Attachment>?
    private var oldest: Unmanaged<Attachment>?
    private(set) var byteCount = 0

    /// Takes over a reference.
    mutating func add(_ attachment: Attachment, to entry: EntryPointer) {
        attachment.entry = entry
        entry.head.pointee.attachment = push(Unmanaged.passRetained(attachment))
        byteCount += attachment.byteCount
    }

    private mutating func push(_ attachment: Unmanaged<Attachment>) -> Unmanaged<Attachment> {
        attachment._withUnsafeGuaranteedRef {
            $0.newer = nil
            $0.older = newest
        }
        if let newest { newest._withUnsafeGuaranteedRef { $0.newer = attachment } } else { oldest = attachment }
        newest = attachment
        return attachment
    }

    private mutating func unlink(_ attachment: Unmanaged<Attachment>) {
        attachment._withUnsafeGuaranteedRef { gone in
            if let newer = gone.newer {
                newer._withUnsafeGuaranteedRef { $0.older = gone.older }
            } else {
                newest = gone.older
            }
            if let older = gone.older {
                older._withUnsafeGuaranteedRef { $0.newer = gone.newer }
            } else {
                oldest = gone.newer
            }
        }
    }

    /// Takes an entry's attachment away.
    /// - Returns: the reference that the list held; nil when there was none.
    mutating func take(from entry: EntryPointer) -> Unmanaged<Attachment>? {
        guard let attachment = entry.head.pointee.attachment else { return nil }
        entry.head.pointee.attachment = nil
        unlink(attachment)
        attachment._withUnsafeGuaranteedRef {
            $0.entry = nil
            byteCount -= $0.byteCount
        }
        return attachment
    }

    /// The entry whose attachment leaves next: the oldest that was not asked for since the last look (CLOCK); nil when
    /// there are none.
    mutating func nextToLeave() -> EntryPointer? {
        while let candidate = oldest {
            let entry = candidate._withUnsafeGuaranteedRef { attachment -> EntryPointer? in
                guard attachment.wasRead else { return attachment.entry }
                attachment.wasRead = false
                return nil
            }
            if let entry { return entry }
            unlink(candidate)
            _ = push(candidate)
        }
        return nil
    }
}

/// Attachments that entries have let go, until somebody releases them who holds no lock: what is in them belongs to the
/// user of the engine, and its deinitializers may call the engine.
///
/// Thread-safe. A list through the attachments' own links, to which a reference is added by one exchange, and which is
/// taken as a whole by another.
final class ReleaseQueue: Sendable {
    /// The address of the one that came last, with the reference that the queue owns; 0 for none.
    private let newest = Atomic<UInt>(0)
    private let bytes = Atomic<Int>(0)
    private let isReleasing = Atomic<Bool>(false)

    deinit { releaseAll() }

    /// What waits to be released, in bytes.
    var byteCount: Int { bytes.load(ordering: .relaxed) }

    /// Takes over a reference. Called with locks held.
    func add(_ attachment: Unmanaged<Attachment>) {
        let address = UInt(bitPattern: attachment.toOpaque())
        bytes.add(attachment._withUnsafeGuaranteedRef { $0.byteCount }, ordering: .relaxed)
        var before = newest.load(ordering: .relaxed)
        while true {
            attachment._withUnsafeGuaranteedRef { $0.older = Self.attachment(before) }
            let (exchanged, original) = newest.compareExchange(
                expected: before, desired: address, successOrdering: .releasing, failureOrdering: .relaxed)
            if exchanged { return }
            before = original
        }
    }

    /// Releases everything. Called with no lock held, by a thread that may run whatever the attachments' deinitializers
    /// do. While one thread is at it, calls of others, and those that a deinitializer makes, leave it to that one.
    func release() {
        while newest.load(ordering: .relaxed) != 0 {
            guard isReleasing.compareExchange(expected: false, desired: true, ordering: .acquiring).exchanged else {
                return
            }
            releaseAll()
            isReleasing.store(false, ordering: .releasing)
        }
    }

    private func releaseAll() {
        var next = Self.attachment(newest.exchange(0, ordering: .acquiring))
        while let attachment = next {
            let byteCount = attachment._withUnsafeGuaranteedRef { attachment in
                next = attachment.older
                attachment.older = nil
                return attachment.byteCount
            }
            attachment.release()
            bytes.subtract(byteCount, ordering: .relaxed)
        }
    }

    private static func attachment(_ address: UInt) -> Unmanaged<Attachment>? {
        UnsafeRawPointer(bitPattern: address).map { Unmanaged.fromOpaque($0) }
    }
}
