/// Properties of a command. The accessors are inlinable, because some flags are tested for each command that runs.
@usableFromInline package struct CommandFlags: OptionSet, Sendable {
    @usableFromInline package let rawValue: Int
    @inlinable package init(rawValue: Int) { self.rawValue = rawValue }

    /// The command changes entries or databases. The database's files are opened first if necessary.
    @inlinable package static var write: CommandFlags { CommandFlags(rawValue: 1) }
    /// The command reads entries. The database's files are opened first if necessary.
    @inlinable package static var readonly: CommandFlags { CommandFlags(rawValue: 2) }
    @inlinable package static var fast: CommandFlags { CommandFlags(rawValue: 4) }
    @inlinable package static var admin: CommandFlags { CommandFlags(rawValue: 8) }
    @inlinable package static var loading: CommandFlags { CommandFlags(rawValue: 16) }
    @inlinable package static var stale: CommandFlags { CommandFlags(rawValue: 32) }

    /// The command works on whole databases, on a thread that may block. No database is opened or created before the
    /// command runs.
    @inlinable package static var wholeDatabase: CommandFlags { CommandFlags(rawValue: 64) }
    /// The command can store new entries. If the database has no files, they are created first.
    @inlinable package static var creates: CommandFlags { CommandFlags(rawValue: 128) }
    /// The database's files are opened first if necessary, although the command does not read entries.
    @inlinable package static var opens: CommandFlags { CommandFlags(rawValue: 256) }
    /// The command runs immediately between MULTI and EXEC, instead of being queued.
    @inlinable package static var inMulti: CommandFlags { CommandFlags(rawValue: 512) }
    /// The command is not allowed between MULTI and EXEC.
    @inlinable package static var noMulti: CommandFlags { CommandFlags(rawValue: 1024) }
    @inlinable package static var noScript: CommandFlags { CommandFlags(rawValue: 2048) }
    @inlinable package static var allowBusy: CommandFlags { CommandFlags(rawValue: 4096) }
    @inlinable package static var skipSlowlog: CommandFlags { CommandFlags(rawValue: 8192) }
    @inlinable package static var noAuth: CommandFlags { CommandFlags(rawValue: 1 << 14) }
    @inlinable package static var noAsyncLoading: CommandFlags { CommandFlags(rawValue: 1 << 15) }
    /// The command sends messages to clients, or changes which clients receive messages.
    @inlinable package static var pubsub: CommandFlags { CommandFlags(rawValue: 1 << 16) }
    /// The command runs on its connection's event loop, even if the commands before it ran on another thread.
    @inlinable package static var onLoop: CommandFlags { CommandFlags(rawValue: 1 << 17) }
    /// A short command. It runs on the thread for status commands, so that it does not wait for long commands.
    @inlinable package static var status: CommandFlags { CommandFlags(rawValue: 1 << 18) }
    /// The command runs on the threads for short work, so that it does not wait for the long work of other commands.
    @inlinable package static var brief: CommandFlags { CommandFlags(rawValue: 1 << 19) }
    /// Redis refuses the command when its memory limit is reached. Larder shows this flag, but does not use it.
    @inlinable package static var denyOOM: CommandFlags { CommandFlags(rawValue: 1 << 20) }
    /// The command is in Redis' category `@dangerous`.
    @inlinable package static var dangerous: CommandFlags { CommandFlags(rawValue: 1 << 21) }
    /// The command is in Redis' category `@admin`, although it does not have the flag ``admin``.
    @inlinable package static var administrative: CommandFlags { CommandFlags(rawValue: 1 << 22) }
    /// A RESP2 client with subscriptions may run the command.
    @inlinable package static var inSubscriberMode: CommandFlags { CommandFlags(rawValue: 1 << 23) }
    /// The command publishes a message. CLIENT PAUSE therefore delays it like a write.
    @inlinable package static var publishes: CommandFlags { CommandFlags(rawValue: 1 << 24) }
    /// The command runs the commands that were queued since MULTI.
    @inlinable package static var runsTransaction: CommandFlags { CommandFlags(rawValue: 1 << 25) }
    /// If this command follows CLIENT CACHING, the setting still applies to the command after this one.
    @inlinable package static var preservesClientCaching: CommandFlags { CommandFlags(rawValue: 1 << 26) }
    /// The command is intended for internal use by servers.
    @inlinable package static var systemCommand: CommandFlags { CommandFlags(rawValue: 1 << 27) }

    /// Redis does not show the command in MONITOR. Larder shows this flag, but does not use it.
    @inlinable package static var skipMonitor: CommandFlags { CommandFlags(rawValue: 1 << 28) }
    /// A call of the command may have no keys.
    @inlinable package static var noMandatoryKeys: CommandFlags { CommandFlags(rawValue: 1 << 29) }
    /// The command runs a script, which determines what is read and written.
    @inlinable package static var runsScript: CommandFlags { CommandFlags(rawValue: 1 << 30) }
    /// The command administers only the selected database. The user needs no rights in other databases.
    @inlinable package static var ofSelectedDatabase: CommandFlags { CommandFlags(rawValue: 1 << 31) }
    /// The command shows information only about databases that the user may read.
    @inlinable package static var showsReadable: CommandFlags { CommandFlags(rawValue: 1 << 34) }
    /// The command changes or shows what other clients do, in any database.
    @inlinable package static var affectsOthers: CommandFlags { CommandFlags(rawValue: 1 << 32) }
    /// The command writes if it has arguments; otherwise, it only reads.
    @inlinable package static var writesWithArguments: CommandFlags { CommandFlags(rawValue: 1 << 33) }

    /// The names of the flags in Redis, in the order of Redis.
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
