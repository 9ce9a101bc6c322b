import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// Access rules of a session.
extension Session {
    /// Applies the current access rules if they have changed. Closes a connection whose subscriptions are no longer
    /// allowed.
    func renewRights() {
        let generation = server.access.generation.load(ordering: .acquiring)
        guard generation != rightsGeneration else { return }
        rightsGeneration = generation
        let old = rights
        rights = server.access.rules.rights(of: record.credentials)
        record.change { $0.user = server.access.userName(record.credentials) }
        noteFastRights()
        if record.listens, let rights, old.map({ !rights.covers($0) }) ?? rights.areLimited {
            record.close(Self.reduced)
        }
    }

    static let reduced = "its user lost rights while the connection was subscribed to changes, messages or commands"

    /// Updates the use of the fast path, which does not check rights: only users who may run all of its commands in the
    /// selected database use it.
    func noteFastRights() {
        let name = database.name
        let level: AccessLevel? =
            rights.map { $0.covers(.write, in: name) ? .write : $0.covers(.read, in: name) ? .read : nil } ?? .write
        guard level != fastLevel else { return }
        fastLevel = level
        noteMode()
    }

    /// Where a command was called, as shown in ACL LOG.
    enum CallContext: String {
        case toplevel, multi, lua
    }

    /// Throws if the connection's user does not have the right to make a call.
    /// - Parameter word: returns the bytes of its words.
    func checkRights(
        _ row: CommandMetadata, count: Int, in context: CallContext = .toplevel, _ word: (Int) -> UnsafeRawBufferPointer
    ) throws(CommandError) {
        guard let rights else { return }
        let queued = context == .toplevel && !row.flags.contains(.inMulti) ? transactions.queue : nil
        let selected = queued?.selection ?? database.name
        guard let refusal = rights.refusal(row, count: count, selected: selected, word) else { return }
        throw refuse(row, refusal, queued == nil ? context : .multi)
    }

    /// Whether this connection's invalidations may be redirected to another connection.
    func mayRedirect(to id: Int64) -> Bool {
        guard let rights, rights.areLimited, let target = server.clientRegistry.find(id) else { return true }
        return target.credentials?.user == record.credentials?.user
    }

    /// Whether this connection's user may receive the events of a database, by the rules at the time of the event.
    var hears: @Sendable (String) -> Bool {
        { [access = server.access, credentials = record.credentials] name in
            if access.generation.load(ordering: .acquiring) == 0 { return true }
            return access.rules.rights(of: credentials)?.covers(.read, in: name) ?? true
        }
    }

    /// Logs the call of a disabled command.
    func refuseSwitchedOff(_ row: CommandMetadata, _ context: CallContext) -> CommandError {
        note(denial(.command, context, row.name, isSwitchedOff: true))
        return .switchedOff(row)
    }

    /// The client's name in the log.
    var logName: String { "\(record.known.user) (client \(id))" }

    /// Logs a wrong password.
    /// - Parameter name: the user name given with it.
    func notePassword(_ command: String, name: String) {
        let who = record.credentials.map { "client \(id) (uid \($0.user))" } ?? "client \(id)"
        let context: CallContext = transactions.queue == nil && transactions.execution == nil ? .toplevel : .multi
        server.access.notePassword(
            denial(.auth, context, command, user: name), of: who, monotonic: clock.monotonic())
    }

    private func denial(
        _ reason: AccessControl.Denial.Reason, _ context: CallContext, _ object: String, user: String? = nil,
        isSwitchedOff: Bool = false
    ) -> AccessControl.Denial {
        AccessControl.Denial(
            reason: reason, context: context.rawValue, object: object, user: user ?? record.known.user,
            isSwitchedOff: isSwitchedOff, client: record.line(now: server.engine.now()), at: server.engine.now())
    }

    private func note(_ denial: AccessControl.Denial) { server.access.note(denial, monotonic: clock.monotonic()) }

    private func refuse(
        _ row: CommandMetadata, _ refusal: Rights.Refusal, _ context: CallContext
    ) -> CommandError {
        let user = record.known.user
        let (reason, object): (AccessControl.Denial.Reason, String) =
            switch refusal {
            case .command: (.command, row.name)
            case .database(let name, _): (.database, name)
            case .channel(let name, _):
                (.channel, String(decoding: name.prefix(Rights.Refusal.shownMax), as: UTF8.self))
            }
        note(denial(reason, context, object))
        return CommandError("NOPERM \(refusal.text(row, user: user))")
    }
}

extension ServerState {
    /// Applies access rules. Open connections follow them from their next command on.
    func change(_ rules: AccessRules) {
        let old = access.change(rules)
        for record in clientRegistry.all where record.listens {
            // Check subscriptions now: a connection that sends no commands would keep receiving messages.
            guard let now = rules.rights(of: record.credentials) else { continue }
            let before = old.rights(of: record.credentials)
            if before.map({ !now.covers($0) }) ?? now.areLimited { record.close(Session.reduced) }
        }
    }
}
