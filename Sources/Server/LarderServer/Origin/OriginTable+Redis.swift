import LarderOriginClients

extension OriginTable {
    /// Creates the connections to an origin that is Redis, Valkey, a larder, or a cluster of Redis or Valkey.
    package static let redis: OriginFactory = { (source, reads, limits, listener) throws(OriginError) in
        let address: OriginAddress
        do throws(OriginAddress.Failure) {
            address = try OriginAddress(source.url, user: source.user, passwordFile: source.passwordPath)
        } catch {
            throw .unsuitable(error.description)
        }
        guard reads.secondReadAfter == nil || address.isCluster else {
            throw .unsuitable("REPLICAS needs a cluster: use it with redis+cluster://")
        }
        let tracking: RedisOrigin.Tracking =
            switch reads.hearing {
            case .tracking: .read
            case .broadcast(let prefixes): .broadcast(prefixes: prefixes.map { Array($0.utf8) })
            case .lifetimes: .none
            }
        return RedisOrigin(
            address, limits: limits, tracking: tracking, secondReadAfter: reads.secondReadAfter, listener: listener)
    }
}
