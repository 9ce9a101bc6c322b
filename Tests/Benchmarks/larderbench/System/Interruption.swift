import LarderPlatform
import Synchronization

/// Whether SIGINT or SIGTERM arrived. Checked between measurements, so that servers are stopped and the temporary
/// directory is removed however the program ends.
enum Interruption {
    private static let flag = Atomic<Bool>(false)

    static func watch() {
        signal(SIGINT) { _ in Interruption.flag.store(true, ordering: .relaxed) }
        signal(SIGTERM) { _ in Interruption.flag.store(true, ordering: .relaxed) }
        signal(SIGPIPE, SIG_IGN)
    }

    static var isRequested: Bool { flag.load(ordering: .relaxed) }

    static func check() throws(BenchError) {
        if isRequested { throw .interrupted }
    }
}
