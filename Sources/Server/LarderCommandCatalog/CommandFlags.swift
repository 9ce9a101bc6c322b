/// Properties of a command. Inlinable, because some of them are tested for every command that runs.
@usableFromInline package struct CommandFlags: OptionSet, Sendable {
    @usableFromInline package let rawValue: Int
    @inlinable package init(rawValue: Int) { self.rawValue = rawValue }

    /// Changes entries or databases: the database is first opened or reopened if necessary.
    @inlinable package static var write: CommandFlags { CommandFlags(rawValue: 1) }
    /// Reads entries: the database is first opened if necessary.
    @inlinable package static var readonly: CommandFlags { CommandFlags(rawValue: 2) }
    @inlinable package static var fast: CommandFlags { CommandFlags(rawValue: 4) }
    @inlinable package static var admin: CommandFlags { CommandFlags(rawValue: 8) }
    @inlinable package static var loading: CommandFlags { CommandFlags(rawValue: 16) }
    @inlinable package static var stale: CommandFlags { CommandFlags(rawValue: 32) }

    /// Works on whole databases, on a thread that may block; no database is opened or created before it runs.
    @inlinable package static var wholeDatabase: CommandFlags { CommandFlags(rawValue: 64) }
    /// Stores new entries: a database without files is created first.
    @inlinable package static var creates: CommandFlags { CommandFlags(rawValue: 128) }
    /// Needs the database open, although it does not read entries.
    @inlinable package static var opens: CommandFlags { CommandFlags(rawValue: 256) }
    /// Runs between MULTI and EXEC instead of being queued.
    @inlinable package static var inMulti: CommandFlags { CommandFlags(rawValue: 512) }
    /// Not allowed between MULTI and EXEC.
    @inlinable package static var noMulti: CommandFlags { CommandFlags(rawValue: 1024) }
    @inlinable package static var noScript: CommandFlags { CommandFlags(rawValue: 2048) }
    @inlinable package static var allowBusy: CommandFlags { CommandFlags(rawValue: 4096) }
    @inlinable package static var skipSlowlog: CommandFlags { CommandFlags(rawValue: 8192) }
    @inlinable package static var noAuth: CommandFlags { CommandFlags(rawValue: 1 << 14) }
    @inlinable package static var noAsyncLoading: CommandFlags { CommandFlags(rawValue: 1 << 15) }
    /// Sends messages to connections, or changes which connections receive them.
    @inlinable package static var pubsub: CommandFlags { CommandFlags(rawValue: 1 << 16) }
    /// Runs on the connection's event loop, regardless of where the previous commands ran.
    @inlinable package static var onLoop: CommandFlags { CommandFlags(rawValue: 1 << 17) }
    /// Deferred to a separate thread, because it is always short and must not wait for long commands.
    @inlinable package static var status: CommandFlags { CommandFlags(rawValue: 1 << 18) }
    /// Deferred, with a bounded duration.
    @inlinable package static var brief: CommandFlags { CommandFlags(rawValue: 1 << 19) }
    /// Refused by Redis when its memory limit is reached.
    @inlinable package static var denyOOM: CommandFlags { CommandFlags(rawValue: 1 << 20) }
    /// In Redis' category `@dangerous`.
    @inlinable package static var dangerous: CommandFlags { CommandFlags(rawValue: 1 << 21) }
    /// In Redis' category `@admin`, although it does not have the flag ``admin``.
    @inlinable package static var administrative: CommandFlags { CommandFlags(rawValue: 1 << 22) }
    /// Allowed on a RESP2 connection that has subscriptions.
    @inlinable package static var inSubscriberMode: CommandFlags { CommandFlags(rawValue: 1 << 23) }
    /// Publishes a message: CLIENT PAUSE delays it like a write.
    @inlinable package static var publishes: CommandFlags { CommandFlags(rawValue: 1 << 24) }
    /// Runs the commands queued by MULTI.
    @inlinable package static var runsTransaction: CommandFlags { CommandFlags(rawValue: 1 << 25) }
    /// Consumes the setting of CLIENT CACHING.
    @inlinable package static var keepsCaching: CommandFlags { CommandFlags(rawValue: 1 << 26) }
    /// For internal use by the server.
    @inlinable package static var systemCommand: CommandFlags { CommandFlags(rawValue: 1 << 27) }

    /// In Redis, MONITOR does not show it separately.
    @inlinable package static var skipMonitor: CommandFlags { CommandFlags(rawValue: 1 << 28) }
    /// A call may have no keys.
    @inlinable package static var noMandatoryKeys: CommandFlags { CommandFlags(rawValue: 1 << 29) }
    /// Runs a script, which determines its effect.
    @inlinable package static var runsScript: CommandFlags { CommandFlags(rawValue: 1 << 30) }
    /// Administers only the selected database.
    @inlinable package static var ofSelectedDatabase: CommandFlags { CommandFlags(rawValue: 1 << 31) }
    /// Shows only information about databases that the user may read.
    @inlinable package static var showsReadable: CommandFlags { CommandFlags(rawValue: 1 << 34) }
    /// Changes or shows the activity of other connections, in any database.
    @inlinable package static var affectsOthers: CommandFlags { CommandFlags(rawValue: 1 << 32) }
    /// Writes if it has arguments.
    @inlinable package static var writesWithArguments: CommandFlags { CommandFlags(rawValue: 1 << 33) }

    /// Redis' names, in Redis' order.
    package var names: [String] {
        let all: [(CommandFlags, String)] = [
            (.write, "write"), (.readonly, "readonly"), (.denyOOM, "denyoom"), (.admin, "admin"), (.pubsub, "pubsub"),
            (.noScript, "noscript"), (.loading, "loading"), (.stale, "stale"), (.skipMonitor, "skip_monitor"),
            (.skipSlowlog, "skip_slowlog"), (.fast, "fast"), (.noAuth, "no_auth"),
            (.noAsyncLoading, "no_async_loading"), (.noMulti, "no_multi"), (.noMandatoryKeys, "no_mandatory_keys"),
            (.allowBusy, "allow_busy"),
        ]
        return all.filter { contains($0.0) }.map(\.1)
    }
}
