import LarderClient
import Logging

extension Logger {
    /// Logs an event of a larder or of a client: `options.onEvent = { logger.log($0) }`.
    public func log(_ event: CacheEvent) {
        let level: Logger.Level =
            switch event.level {
            case .debug: .debug
            case .info: .info
            case .warning: .warning
            case .error: .error
            }
        var metadata = event.metadata.mapValues { Logger.MetadataValue.string($0) }
        if let error = event.error { metadata["error"] = "\(error)" }
        log(level: level, "\(event.message)", metadata: metadata, source: "Larder")
    }
}
