import Larder

/// The names of the databases, and how to open them.
enum Databases {
    /// The packages that dpkg has installed; keys as ``PackageRecord/installedKey``.
    static let installed = "installed"
    /// The packages that apt can install; keys as ``PackageRecord/availableKey``.
    static let available = "available"

    /// Opens the database given by `--directory` and `--database`, to read the records that `load` stored in it.
    static func open(_ arguments: inout Arguments) throws -> Cache {
        let directory = try arguments.required("--directory")
        let name = arguments.option("--database") ?? installed
        guard try Cache.databases(in: directory).contains(name) else {
            throw Catalog.NotFound(message: "\(directory) has no database '\(name)': load one first")
        }
        return try Cache(named: name, directory: directory)
    }
}
