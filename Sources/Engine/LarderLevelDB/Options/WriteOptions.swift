/// Options of a write.
package struct WriteOptions: Sendable {
    /// Whether the write returns only after LevelDB's log was synced to the disk (with fdatasync; on macOS with the
    /// call that LevelDB was built with). The default is false: the write is then in the operating system's cache. It
    /// survives the termination of the process, but not a machine failure.
    ///
    /// A write with sync also makes earlier writes to the *current* log durable. If LevelDB has begun a new log since
    /// an earlier write, it has closed the old log without a sync, and that write may not be durable.
    package var sync = false

    package init(sync: Bool = false) { self.sync = sync }
}
