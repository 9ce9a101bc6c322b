import LarderOriginClients
import LarderRESP

/// A placeholder until the origin is connected. All its calls fail.
final class NoOrigin: Origin {
    var name: String { "none" }

    func read(_ keys: [[UInt8]], completion: @escaping @Sendable ([Result<OriginReading, OriginError>]) -> Void) {
        completion(keys.map { _ in .failure(.closed) })
    }

    func write(
        _ write: OriginWrite, completion: @escaping @Sendable (Result<OriginAcknowledgement, OriginError>) -> Void
    ) {
        completion(.failure(.closed))
    }

    func remove(_ keys: [[UInt8]], completion: @escaping @Sendable (Result<Int, OriginError>) -> Void) {
        completion(.failure(.closed))
    }

    func perform(
        _ words: [[UInt8]], key: [UInt8]?, completion: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void
    ) {
        completion(.failure(.closed))
    }

    func isCurrent(_ stamp: OriginStamp, now: Int64) -> Bool { false }

    func status() -> OriginStatus { OriginStatus() }

    func close() {}
}
