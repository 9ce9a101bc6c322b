import LarderLevelDB

/// A move of a cursor, as a value.
enum Move {
    case first
    case last
    case to([UInt8])
    case backwardTo([UInt8])
    case next
    case previous

    static func to(_ text: String) -> Move { .to(bytes(text)) }
    static func backwardTo(_ text: String) -> Move { .backwardTo(bytes(text)) }

    func callAsFunction(_ cursor: Cursor) throws(LevelDBError) {
        switch self {
        case .first: try cursor.seekToFirst()
        case .last: try cursor.seekToLast()
        case .to(let key): try cursor.seek(to: key)
        case .backwardTo(let key): try cursor.seekBackward(to: key)
        case .next: try cursor.next()
        case .previous: try cursor.previous()
        }
    }
}
