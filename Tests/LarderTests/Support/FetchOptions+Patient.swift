import Larder

extension FetchOptions {
    /// ``OriginCache/standardOptions`` with a hard timeout of ten minutes, because tasks may wait long while many other
    /// tests run.
    static var patient: FetchOptions {
        var options = OriginCache.standardOptions
        options.hardTimeout = .seconds(600)
        return options
    }
}

extension OriginCacheLimits {
    /// Limits with an hour for each call of the origin, for the same reason.
    static var patient: OriginCacheLimits {
        var limits = OriginCacheLimits()
        limits.call = .seconds(3_600)
        return limits
    }
}
