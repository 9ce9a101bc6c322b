/// Options of a write.
package struct WriteOptions: Sendable {
    /// Returns only when the log is on the disk (fdatasync; on macOS the call that LevelDB was built with). The default
    /// is false: the write is then in the operating system, and survives the death of the process but not of the
    /// machine.
    ///
    /// A sync write also makes earlier ones of the *current* log durable, but not those of a log that was rotated in
    /// the meantime: LevelDB closes it without a sync.
    package var sync = false

    package init(sync: Bool = false) { self.sync = sync }
}
