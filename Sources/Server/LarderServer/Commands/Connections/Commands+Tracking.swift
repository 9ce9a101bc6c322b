import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// The subcommands of CLIENT for client-side caching (CLIENT TRACKING).
extension CommandTable {
    static let trackingCommands: Handlers = [
        .clientTracking: tracking,
        .clientCaching: caching,
        .clientGetredir: { call in call.reply(call.session.tracking.client?.redirect ?? -1) },
        .clientTrackinginfo: info,
    ]

    private struct TrackingOptions {
        var redirect: Int64 = 0
        var isBroadcast = false
        var isOptIn = false
        var isOptOut = false
        var isNoLoop = false
        var isOfDatabase = false
        var prefixes: [[UInt8]] = []

        init(_ call: Call) throws(CommandError) {
            var options = OptionReader(call, from: 3)
            while let name = options.next() {
                switch name {
                case "redirect":
                    let index = try options.value()
                    guard redirect == 0 else {
                        throw CommandError("ERR A client can only redirect to a single other client")
                    }
                    redirect = try call.integer(index)
                    guard let target = call.server.clientRegistry.find(redirect) else {
                        throw CommandError("ERR The client ID you want redirect to does not exist")
                    }
                    guard call.session.rights.mayRedirect(to: target) else {
                        throw CommandError(
                            "NOPERM invalidations can only be redirected to connections of the same user: client "
                                + "\(redirect) belongs to another user (only administrators may redirect to it)")
                    }
                case "bcast": isBroadcast = true
                case "optin": isOptIn = true
                case "optout": isOptOut = true
                case "noloop": isNoLoop = true
                case "database": isOfDatabase = true
                case "prefix": prefixes.append(call.array(try options.value()))
                default: throw .syntax
                }
            }
        }
    }

    @Sendable private static func tracking(_ call: inout Call) throws(CommandError) -> Outcome {
        let options = try TrackingOptions(call)
        let session = call.session
        if call.isWord(2, "ON") {
            try check(options, session.tracking.client)
            let mode: TrackingClient.Mode
            if options.isBroadcast {
                // Add the new prefixes to the prefixes that the client already tracks. ``Rights`` has checked that the
                // user may read all databases.
                var prefixes = session.tracking.client?.prefixes ?? []
                // Without PREFIX, all keys are tracked: add the empty prefix. But if the client already tracks
                // prefixes, DATABASE without PREFIX adds no prefix: it limits the existing ones to one database.
                let saysMore = options.isOfDatabase && !prefixes.isEmpty
                prefixes += options.prefixes.isEmpty && !saysMore ? [[]] : options.prefixes
                try checkSubscriptions(
                    prefixes.reduce(0) { $0 + Subscriptions.byteCount($1.count) }, call.server.limits)
                mode = .broadcast(prefixes)
            } else {
                mode = options.isOptIn ? .optIn : options.isOptOut ? .optOut : .read
            }
            session.track(
                TrackingClient(
                    session.subscriptions.subscriber,
                    TrackingSettings(
                        mode: mode, redirect: options.redirect, isNoLoop: options.isNoLoop,
                        onlyDatabase: options.isOfDatabase ? session.database.name : nil),
                    database: session.database.name, mayNotify: session.rights.mayNotify))
        } else if call.isWord(2, "OFF") {
            session.track(nil)
        } else {
            throw .syntax
        }
        return call.ok()
    }

    /// Throws if options contradict each other, or do not fit the connection's current mode of tracking.
    private static func check(_ options: TrackingOptions, _ old: TrackingClient?) throws(CommandError) {
        if !options.isBroadcast, !options.prefixes.isEmpty {
            throw CommandError("ERR PREFIX option requires BCAST mode to be enabled")
        }
        if let old, old.isBroadcast != options.isBroadcast {
            throw CommandError(
                "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then "
                    + "re-enabling it with a different mode.")
        }
        if !options.isBroadcast, options.isOfDatabase {
            throw CommandError(
                "ERR DATABASE option requires BCAST mode to be enabled: without it, clients are notified only of databases that they have selected"
            )
        }
        if options.isBroadcast, options.isOptIn || options.isOptOut {
            throw CommandError("ERR OPTIN and OPTOUT are not compatible with BCAST")
        }
        if options.isOptIn, options.isOptOut {
            throw CommandError("ERR You can't specify both OPTIN mode and OPTOUT mode")
        }
        if let old {
            let isSwitched =
                switch old.mode {
                case .optIn: options.isOptOut
                case .optOut: options.isOptIn
                case .read, .broadcast: false
                }
            if isSwitched {
                throw CommandError(
                    "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then "
                        + "re-enabling it with a different mode.")
            }
        }
        try checkPrefixes(options.prefixes, old?.prefixes ?? [])
    }

    private static func checkPrefixes(_ new: [[UInt8]], _ old: [[UInt8]]) throws(CommandError) {
        for (index, prefix) in new.enumerated() {
            if let other = old.first(where: { overlap($0, prefix) }) {
                throw overlapError(prefix, "an existing", other)
            }
            if let other = new[(index + 1)...].first(where: { overlap($0, prefix) }) {
                throw overlapError(prefix, "another provided", other)
            }
        }
    }

    private static func overlap(_ one: [UInt8], _ other: [UInt8]) -> Bool {
        one.starts(with: other) || other.starts(with: one)
    }

    private static func overlapError(_ prefix: [UInt8], _ which: String, _ other: [UInt8]) -> CommandError {
        CommandError(
            "ERR Prefix '", prefix, "' overlaps with \(which) prefix '",
            other + Array("'. Prefixes for a single client must not overlap.".utf8))
    }

    @Sendable private static func caching(_ call: inout Call) throws(CommandError) -> Outcome {
        guard let tracking = call.session.tracking.client else {
            throw CommandError(
                "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode "
                    + "enabled")
        }
        if call.isWord(2, "YES") {
            guard case .optIn = tracking.mode else {
                throw CommandError("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")
            }
            call.session.tracking.caching = true
        } else if call.isWord(2, "NO") {
            guard case .optOut = tracking.mode else {
                throw CommandError("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
            }
            call.session.tracking.caching = false
        } else {
            throw .syntax
        }
        return call.ok()
    }

    @Sendable private static func info(_ call: inout Call) throws(CommandError) -> Outcome {
        let session = call.session
        let tracking = session.tracking.client
        let flags = flags(session)
        session.replies.map(count: 3)
        session.replies.bulk("flags")
        session.replies.set(count: flags.count)
        for flag in flags { session.replies.bulk(flag) }
        session.replies.field("redirect", tracking?.redirect ?? -1)
        session.replies.bulk("prefixes")
        let prefixes = (tracking?.prefixes ?? []).sorted { $0.lexicographicallyPrecedes($1) }
        session.replies.words(prefixes)
        return .done
    }

    private static func flags(_ session: Session) -> [String] {
        guard let tracking = session.tracking.client else { return ["off"] }
        var flags = ["on"]
        switch tracking.mode {
        case .read: break
        case .broadcast: flags.append("bcast")
        case .optIn: flags += session.tracking.caching == true ? ["optin", "caching-yes"] : ["optin"]
        case .optOut: flags += session.tracking.caching == false ? ["optout", "caching-no"] : ["optout"]
        }
        if tracking.isNoLoop { flags.append("noloop") }
        if tracking.redirect != 0, session.server.clientRegistry.find(tracking.redirect) == nil {
            flags.append("broken_redirect")
        }
        return flags
    }
}
