import LarderLevelDB

extension LarderError {
    init(_ error: LevelDBError, operation: String, database: String, key: Key?) {
        let code: Code =
            switch error.code {
            case .corruption: .damaged
            case .closed: .closed
            case .invalidArgument: .invalidArgument
            default: .io
            }
        self.init(
            code, error.message, operation: operation, database: database, key: key?.description, underlying: error)
    }
}
