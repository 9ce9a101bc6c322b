/// What holds or does not hold of a command.
package struct CommandFlags: OptionSet, Sendable {
    package let rawValue: Int
    package init(rawValue: Int) { self.rawValue = rawValue }

    /// Changes entries or databases: the database is opened or reopened first where that is needed.
    package static let write = CommandFlags(rawValue: 1)
    /// Reads entries: the database is opened first where that is needed.
    package static let readonly = CommandFlags(rawValue: 2)
    package static let fast = CommandFlags(rawValue: 4)
    package static let admin = CommandFlags(rawValue: 8)
    package static let loading = CommandFlags(rawValue: 16)
    package static let stale = CommandFlags(rawValue: 32)

    /// Works on whole databases and on a thread that may block, so that nothing is opened or created before it runs.
    package static let wholeDatabase = CommandFlags(rawValue: 64)
    /// Stores entries where there were none: a database without files is created first.
    package static let creates = CommandFlags(rawValue: 128)
    /// Reads no entries that it shows, but needs the database open as what does.
    package static let opens = CommandFlags(rawValue: 256)
    /// Runs between MULTI and EXEC instead of being queued.
    package static let inMulti = CommandFlags(rawValue: 512)
    /// Not allowed between MULTI and EXEC.
    package static let noMulti = CommandFlags(rawValue: 1024)
    package static let noScript = CommandFlags(rawValue: 2048)
    package static let allowBusy = CommandFlags(rawValue: 4096)
    package static let skipSlowlog = CommandFlags(rawValue: 8192)
    package static let noAuth = CommandFlags(rawValue: 1 << 14)
    package static let noAsyncLoading = CommandFlags(rawValue: 1 << 15)
    /// Sends messages to connections or changes who gets them.
    package static let pubsub = CommandFlags(rawValue: 1 << 16)
    /// Runs on the connection's event loop, wherever the commands before it ran.
    package static let onLoop = CommandFlags(rawValue: 1 << 17)
    /// Deferred to a thread of its own: takes little time whatever there is, and must not wait behind what takes long.
    package static let status = CommandFlags(rawValue: 1 << 18)
    /// Deferred: takes a bounded time.
    package static let brief = CommandFlags(rawValue: 1 << 19)
    /// Redis refuses it when memory is short.
    package static let denyOOM = CommandFlags(rawValue: 1 << 20)
    /// Counts as dangerous in Redis' categories.
    package static let dangerous = CommandFlags(rawValue: 1 << 21)
    /// Counts as administration in Redis' categories, although it is not ``admin``.
    package static let administrative = CommandFlags(rawValue: 1 << 22)
    /// Allowed to a connection of RESP2 that has subscriptions.
    package static let inSubscriberMode = CommandFlags(rawValue: 1 << 23)
    /// Publishes a message: CLIENT PAUSE holds it back with the writes.
    package static let publishes = CommandFlags(rawValue: 1 << 24)
    /// Runs the commands that are queued since MULTI.
    package static let runsTransaction = CommandFlags(rawValue: 1 << 25)
    /// What CLIENT CACHING said holds for the command behind it.
    package static let keepsCaching = CommandFlags(rawValue: 1 << 26)
    /// Meant for the server's own use.
    package static let systemCommand = CommandFlags(rawValue: 1 << 27)

    /// Redis' names, in the order in which Redis tells them.
    package var names: [String] {
        let all: [(CommandFlags, String)] = [
            (.write, "write"), (.readonly, "readonly"), (.denyOOM, "denyoom"), (.admin, "admin"), (.pubsub, "pubsub"),
            (.noScript, "noscript"), (.loading, "loading"), (.stale, "stale"), (.skipSlowlog, "skip_slowlog"),
            (.fast, "fast"), (.noAuth, "no_auth"), (.noAsyncLoading, "no_async_loading"), (.noMulti, "no_multi"),
            (.allowBusy, "allow_busy"),
        ]
        return all.filter { contains($0.0) }.map(\.1)
    }
}
