import Larder

extension FetchOptions {
    /// ``OriginCache/standardOptions`` for tests that run concurrently with many others, so that tasks may wait for
    /// more than ten seconds.
    static var patient: FetchOptions {
        var options = OriginCache.standardOptions
        options.hardTimeout = .seconds(600)
        return options
    }
}

extension OriginCacheLimits {
    /// The same for calls of the origin.
    static var patient: OriginCacheLimits {
        var limits = OriginCacheLimits()
        limits.call = .seconds(3_600)
        return limits
    }
}
