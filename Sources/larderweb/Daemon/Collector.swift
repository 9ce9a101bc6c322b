import LarderClient
import LarderPlatform

/// Caches the daemon's replies, so that each is requested only once per interval, regardless of the number of browsers.
///
/// Thread-safe.
final class Collector: Sendable {
    /// The connections for requests from browsers. Their commands are logged like those of any client.
    let link: DaemonLink
    /// The connections for periodic requests. Their commands are not logged, if the daemon permits that.
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
        // To list the databases, the daemon counts the entries written since its previous list. This may take long, so
        // limit the share of time that is spent on lists.
        lists = Remembered(milliseconds: 2_000, costFactor: 50) { () throws(LarderClientError) in
            try polling.withClient { client throws(LarderClientError) in try client.databases() }
        }
    }

    func figures() throws(LarderClientError) -> DaemonFigures { try infos.value() }

    func databases() throws(LarderClientError) -> [DatabaseInfo] { try lists.value() }

    /// Drops the cached replies after a change, so that the browser sees its effect.
    func forget() {
        infos.forget()
        lists.forget()
    }
}
