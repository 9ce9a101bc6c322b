import LarderCommandCatalog
import LarderEngine

/// The rights that the access rules give to a connection's user. Adds the user's refused calls to ACL LOG.
///
/// Used only by the owner of its session.
final class ConnectionRights {
    /// Where a command was called, as shown in ACL LOG.
    enum Context: String {
        case toplevel, multi, lua
    }

    /// The rights; nil if there are no access rules.
    private(set) var current: Rights?
    /// The value of ``AccessControl/generation`` when ``current`` was set. If the generation has changed, ``current``
    /// is outdated.
    private(set) var generation = 0
    private let access: AccessControl
    private let record: ClientRecord
    private let clock: EngineTime

    init(_ access: AccessControl, of record: ClientRecord, _ clock: EngineTime) {
        (self.access, self.record, self.clock) = (access, record, clock)
    }

    var areOutdated: Bool { access.generation.load(ordering: .acquiring) != generation }

    /// Looks up the current rights. If a right was lost, and the connection has subscriptions, closes the connection.
    func renew() {
        generation = access.generation.load(ordering: .acquiring)
        let old = current
        current = access.rules.rights(of: record.credentials)
        record.change { $0.user = access.userName(record.credentials) }
        Self.closeIfReduced(record, from: old, to: current)
    }

    /// Closes a connection if it has subscriptions, and its user has lost a right.
    fileprivate static func closeIfReduced(_ record: ClientRecord, from old: Rights?, to new: Rights?) {
        guard record.listens, let new, old.map({ !new.covers($0) }) ?? new.areLimited else { return }
        record.close("its user lost rights while the connection was subscribed to changes, messages or commands")
    }

    /// The highest right up to `write` that the user has in a database; nil if there is none.
    func level(in database: @autoclosure () -> String) -> AccessLevel? {
        guard let current else { return .write }
        let name = database()
        return current.covers(.write, in: name) ? .write : current.covers(.read, in: name) ? .read : nil
    }

    /// Throws if the user does not have the right to run a command.
    /// - Parameters:
    ///   - selected: the name of the database in which the command will run.
    ///   - word: returns the bytes of one of the command's words.
    func check(
        _ row: CommandMetadata, count: Int, selected: String, _ context: Context,
        _ word: (Int) -> UnsafeRawBufferPointer
    ) throws(CommandError) {
        guard let refusal = current?.refusal(row, count: count, selected: selected, word) else { return }
        let (reason, object): (AccessControl.Denial.Reason, String) =
            switch refusal {
            case .command: (.command, row.name)
            case .database(let name, _): (.database, name)
            case .channel(let name, _):
                (.channel, String(decoding: name.prefix(Rights.Refusal.shownMax), as: UTF8.self))
            }
        access.note(denial(reason, context, object))
        throw CommandError("NOPERM \(refusal.text(row, user: record.known.user))")
    }

    /// Throws if a queued command is not allowed any more, because the user has lost rights since it was queued.
    func checkAgain(_ command: QueuedCommand, in database: Database) throws(CommandError) {
        guard current != nil else { return }
        do throws(CommandError) {
            try check(command.row, count: command.count, selected: database.name, .multi) { command[$0] }
        } catch {
            throw CommandError(
                "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. "
                    + "This command is no longer allowed for the following reason: "
                    + error.text.drop { $0 != " " }.dropFirst())
        }
    }

    /// Whether another client may get this client's invalidations. If rights are limited, both must have the same user.
    func mayRedirect(to other: ClientRecord?) -> Bool {
        guard let current, current.areLimited, let other else { return true }
        return other.credentials?.user == record.credentials?.user
    }

    /// Returns whether the user may receive events of a database. Uses the access rules at the time of the event.
    var mayNotify: @Sendable (String) -> Bool {
        { [access, credentials = record.credentials] name in
            if access.generation.load(ordering: .acquiring) == 0 { return true }
            return access.rules.rights(of: credentials)?.covers(.read, in: name) ?? true
        }
    }

    // MARK: ACL LOG

    /// Adds the call of a disabled command to ACL LOG.
    /// - Returns: the error to reply.
    func refuseDisabled(_ row: CommandMetadata, _ context: Context) -> CommandError {
        access.note(denial(.command, context, row.name, isDisabled: true))
        return .switchedOff(row)
    }

    /// Adds a wrong password to ACL LOG.
    /// - Parameter name: the user name that was given with the password.
    func notePassword(_ command: String, name: String, _ context: Context) {
        let who = record.credentials.map { "client \(record.id) (uid \($0.user))" } ?? "client \(record.id)"
        access.notePassword(denial(.auth, context, command, user: name), of: who)
    }

    private func denial(
        _ reason: AccessControl.Denial.Reason, _ context: Context, _ object: String, user: String? = nil,
        isDisabled: Bool = false
    ) -> AccessControl.Denial {
        let now = clock.now()
        return AccessControl.Denial(
            reason: reason, context: context.rawValue, object: object, user: user ?? record.known.user,
            isDisabled: isDisabled, client: record.line(now: now), at: now)
    }
}

extension ServerState {
    /// Replaces the access rules. Each open connection applies them before its next command.
    func change(_ rules: AccessRules) {
        let old = access.change(rules)
        // Check subscribers now, because they receive messages without sending commands.
        for record in clientRegistry.all where record.listens {
            let (before, now) = (old.rights(of: record.credentials), rules.rights(of: record.credentials))
            ConnectionRights.closeIfReduced(record, from: before, to: now)
        }
    }
}
