import LarderClient
import PackageRecords

/// Reads records through larderd, from a larder that another process has open.
enum RemoteCatalog {
    static func find(_ key: String, database: String, socketPath: String) throws -> Show.Found {
        let client = try BlockingLarderClient(socketPath: socketPath, database: database)
        guard let record = try client.value(PackageRecord.self, forKey: key),
            let info = try client.info(forKey: key)
        else { throw Catalog.NotFound(message: "'\(key)' is not in the database '\(database)'") }
        return Show.Found(
            record: record, key: key, age: info.age, timeToLive: info.timeToLive,
            policy: info.databasePolicy.description)
    }
}
