import LarderOriginClients
import LarderRESP

/// The way of a question: larders with their databases, from the one that is asked to the last one.
enum OriginPath {
    enum Answer {
        case path([String])
        /// The origin is no larder.
        case none
        /// It has not answered.
        case unknown
    }

    /// - Parameter nodes: who has asked so far. Whoever finds itself there asks no further.
    static func question(_ nodes: [String]) -> [[UInt8]] { (["ORIGIN", "PATH"] + nodes).map { Array($0.utf8) } }

    static func answer(_ result: Result<RESPValue, OriginError>) -> Answer {
        switch result {
        case .success(let reply): reply.elements.map { .path($0.compactMap(\.string)) } ?? .none
        case .failure(.refused): .none
        case .failure: .unknown
        }
    }

    /// - Returns: why the origin of a database must not be asked; nil if it may be.
    static func circle(of node: String, _ origin: String, _ path: [String]) -> String? {
        guard let index = path.firstIndex(of: node) else { return nil }
        guard index > 0 else { return "a cycle: \(origin) is this database itself" }
        let way = index == 1 ? "" : ", over \(index - 1) other\(index == 2 ? "" : "s")"
        return
            "a cycle: \(origin) has this database as its own origin\(way), so that all would wait for each other; give one "
            + "of them another origin, or none (where writes wait, which cannot be brought: ORIGIN NONE DISCARD forgets that "
            + "they wait, and keeps the values)"
    }
    /// - Returns: why nobody can answer, although this larder is not part of it; nil if that is not known.
    static func circle(behind origin: String, _ path: [String]) -> String? {
        guard let last = path.last, path.dropLast().contains(last) else { return nil }
        return
            "a cycle: behind \(origin) larders have each other as origins, and would wait for each other; give one of them "
            + "another origin, or none"
    }
}
