import LarderClient
import LarderPlatform

/// What larderweb knows of the daemon. However many look, each question is asked once in a while only.
///
/// Thread-safe.
final class Collector: Sendable {
    /// For what somebody asks for in the browser: these commands are logged like those of any client.
    let link: DaemonLink
    /// For what is asked again and again.
    let polling: DaemonLink
    private let infos: Remembered<DaemonFigures>
    private let lists: Remembered<[DatabaseInfo]>

    init(_ link: DaemonLink, polling: DaemonLink) {
        self.link = link
        self.polling = polling
        infos = Remembered(milliseconds: 500) { () throws(LarderClientError) in
            let reply = try polling.command("INFO", "everything")
            guard let text = reply.string else { throw .unexpectedReply(to: "INFO", "text") }
            return DaemonFigures(text)
        }
        // The daemon counts what was written since the last time.
        lists = Remembered(milliseconds: 2_000, costFactor: 50) { () throws(LarderClientError) in
            try polling.withClient { client throws(LarderClientError) in try client.databases() }
        }
    }

    func figures() throws(LarderClientError) -> DaemonFigures { try infos.value() }

    func databases() throws(LarderClientError) -> [DatabaseInfo] { try lists.value() }

    /// After a change, so that who has made it sees it.
    func forget() {
        infos.forget()
        lists.forget()
    }
}
