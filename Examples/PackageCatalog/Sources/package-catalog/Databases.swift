import Larder

/// Which databases there are, and how they are opened.
enum Databases {
    /// What dpkg has installed; keys as ``PackageRecord/installedKey``.
    static let installed = "installed"
    /// What apt has on offer; keys as ``PackageRecord/availableKey``.
    static let available = "available"

    /// Opens the database that `--directory` and `--database` name, to read what `load` stored in it.
    static func open(_ arguments: inout Arguments) throws -> Cache {
        let directory = try arguments.required("--directory")
        let name = arguments.option("--database") ?? installed
        guard try Cache.databases(in: directory).contains(name) else {
            throw Catalog.NotFound(message: "\(directory) has no database '\(name)': load one first")
        }
        return try Cache(named: name, directory: directory)
    }
}
