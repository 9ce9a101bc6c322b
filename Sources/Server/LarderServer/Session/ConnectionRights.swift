import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// Access rules of a session.
extension Session {
    /// Looks up the rights again if the rules have changed. If one was lost, closes a connection with subscriptions.
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

    /// Determines which commands may use the fast path. That path does not check rights, so it is used only if the user
    /// may run all of its commands in the selected database.
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

    /// Throws if the connection's user does not have the right to run a command.
    /// - Parameter word: returns the bytes of one of the command's words.
    func checkRights(
        _ row: CommandMetadata, count: Int, in context: CallContext = .toplevel, _ word: (Int) -> UnsafeRawBufferPointer
    ) throws(CommandError) {
        guard let rights else { return }
        let queued = context == .toplevel && !row.flags.contains(.inMulti) ? transactions.queue : nil
        let selected = queued?.selection ?? database.name
        guard let refusal = rights.refusal(row, count: count, selected: selected, word) else { return }
        throw refuse(row, refusal, queued == nil ? context : .multi)
    }

    /// Whether a client with this ID may get this client's invalidations. For limited rights, it must be of the same
    /// user.
    func mayRedirect(to id: Int64) -> Bool {
        guard let rights, rights.areLimited, let target = server.clientRegistry.find(id) else { return true }
        return target.credentials?.user == record.credentials?.user
    }

    /// Returns whether the user may receive events of a database, by the rules at the time of each event.
    var mayNotify: @Sendable (String) -> Bool {
        { [access = server.access, credentials = record.credentials] name in
            if access.generation.load(ordering: .acquiring) == 0 { return true }
            return access.rules.rights(of: credentials)?.covers(.read, in: name) ?? true
        }
    }

    /// Adds the call of a disabled command to ACL LOG.
    /// - Returns: the error to reply.
    func refuseDisabled(_ row: CommandMetadata, _ context: CallContext) -> CommandError {
        note(denial(.command, context, row.name, isDisabled: true))
        return .switchedOff(row)
    }

    /// The name of the user and the client in log lines.
    var logName: String { "\(record.known.user) (client \(id))" }

    /// Adds a wrong password to ACL LOG.
    /// - Parameter name: the user name that was given with the password.
    func notePassword(_ command: String, name: String) {
        let who = record.credentials.map { "client \(id) (uid \($0.user))" } ?? "client \(id)"
        let context: CallContext = transactions.queue == nil && transactions.execution == nil ? .toplevel : .multi
        server.access.notePassword(
            denial(.auth, context, command, user: name), of: who, monotonic: clock.monotonic())
    }

    private func denial(
        _ reason: AccessControl.Denial.Reason, _ context: CallContext, _ object: String, user: String? = nil,
        isDisabled: Bool = false
    ) -> AccessControl.Denial {
        AccessControl.Denial(
            reason: reason, context: context.rawValue, object: object, user: user ?? record.known.user,
            isDisabled: isDisabled, client: record.line(now: server.engine.now()), at: server.engine.now())
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
    /// Replaces the access rules. Each open connection applies them before its next command.
    func change(_ rules: AccessRules) {
        let old = access.change(rules)
        for record in clientRegistry.all where record.listens {
            // Check subscribers now, because they receive messages without sending commands.
            guard let now = rules.rights(of: record.credentials) else { continue }
            let before = old.rights(of: record.credentials)
            if before.map({ !now.covers($0) }) ?? now.areLimited { record.close(Session.reduced) }
        }
    }
}
