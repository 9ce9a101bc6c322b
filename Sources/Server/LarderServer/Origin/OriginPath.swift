import LarderOriginClients
import LarderRESP

/// The upstream chain of a database: a list of larders, each with the name of its database. Each larder is the origin
/// of the previous larder in the list.
enum OriginPath {
    enum Answer {
        case path([String])
        /// The origin is not a larder.
        case none
        /// The origin has not replied.
        case unknown
    }

    /// Returns the command that requests the upstream chain.
    /// - Parameter nodes: the hops so far. A larder that is one of these hops does not forward the request.
    static func question(_ nodes: [String]) -> [[UInt8]] { (["ORIGIN", "PATH"] + nodes).map { Array($0.utf8) } }

    static func answer(_ result: Result<RESPValue, OriginError>) -> Answer {
        switch result {
        case .success(let reply): reply.elements.map { .path($0.compactMap(\.string)) } ?? .none
        case .failure(.refused): .none
        case .failure: .unknown
        }
    }

    /// Checks whether a database is its own origin, directly or through other larders.
    /// - Returns: the reason why waiting for the origin would be a deadlock; nil if there is no such cycle.
    static func circle(of node: String, _ origin: String, _ path: [String]) -> String? {
        guard let index = path.firstIndex(of: node) else { return nil }
        guard index > 0 else { return "a cycle: \(origin) is this database itself" }
        let way = index == 1 ? "" : ", over \(index - 1) other\(index == 2 ? "" : "s")"
        return
            "a cycle: \(origin) has this database as its origin\(way), so all would wait for each other; set another "
            + "origin for one of them, or none (if queued writes cannot be delivered: ORIGIN NONE DISCARD drops them from the "
            + "outbox, and keeps the values here)"
    }
    /// Checks whether the chain ends in a cycle that does not contain this larder.
    /// - Returns: the reason why the origin cannot reply; nil if there is no such cycle.
    static func circle(behind origin: String, _ path: [String]) -> String? {
        guard let last = path.last, path.dropLast().contains(last) else { return nil }
        return
            "a cycle in the upstream chain of \(origin): its larders would wait for each other; set another origin for one "
            + "of them, or none"
    }
}
