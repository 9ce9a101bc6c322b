import Origins

extension OriginTable {
    /// Origins that are Redis, Valkey or a larder, or a cluster.
    package static let redis: OriginFactory = { (source, limits, listener) throws(OriginError) in
        let address: OriginAddress
        do throws(OriginAddress.Failure) {
            address = try OriginAddress(source.url, user: source.user, passwordFile: source.passwordPath)
        } catch {
            throw .unsuitable(error.description)
        }
        return RedisOrigin(address, limits: limits, listener: listener)
    }
}
