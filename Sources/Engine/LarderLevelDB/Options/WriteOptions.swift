/// Options of a write.
package struct WriteOptions: Sendable {
    /// Returns only when the log is on the disk (fdatasync, or on macOS the call that LevelDB was built with). The
    /// default is false: the write is then in the operating system, and survives the termination of the process, but
    /// not a machine failure.
    ///
    /// A write with sync also makes earlier writes to the *current* log durable. If the log was rotated in the
    /// meantime, LevelDB has closed the old log without a sync, and earlier writes to that log may not be durable.
    package var sync = false

    package init(sync: Bool = false) { self.sync = sync }
}
