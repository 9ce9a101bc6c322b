/// Objects that users of the engine attach to entries in memory: see ``Attachment``.
///
/// An attachment is dropped when any part of the process writes, removes, purges or evicts its entry, or finds it
/// damaged. The attachment of an expired entry is not returned. All attachments together, including those of entries
/// that cannot be evicted, take at most half of the memory budget.
///
/// The next ``releaseDetached()`` releases the dropped attachments. They are not released at once, because locks are
/// held when they are dropped.
extension Database {
    /// Attaches an object to the entry of a key, replacing any earlier attachment. Does nothing if the entry has
    /// changed or left memory, or the attachment is too large.
    /// - Parameter version: the entry's version from ``read(_:now:_:below:fillCache:ticket:holding:_:)``.
    package func attach(_ attachment: Attachment, to key: UnsafeRawBufferPointer, version: UInt64) {
        let hash = Key.hash(key)
        let shard = shards[Shard.index(hash)]
        shard.lock.withLock {
            guard let entry = shard.table.find(key, hash: hash) else { return }
            shard.attach(attachment, to: entry, version: version)
        }
    }

    /// The maximum size of an attachment in bytes, a fraction of the memory budget; 0 without a budget.
    package var attachmentBytesMax: Int { context.memory.largestBytes }

    /// Releases the larder's dropped attachments. Call it after an operation, with no lock held, because the
    /// deinitializers of attachments may call the engine. Costs one atomic load if there are none.
    package func releaseDetached() { context.memory.released.release() }
}
