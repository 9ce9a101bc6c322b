import LarderPlatform

/// Checks the owners and the permissions of a larder's files.
struct AccessCheck {
    private let directory: String
    private var owner: uid_t = 0
    private var foreign: [String] = []
    private var locked: [String] = []
    private var open: [String] = []

    init(directory: String) { self.directory = directory }

    /// Files of LevelDB that have no data of the larder. They are not checked.
    private static let unimportant: Set<String> = ["LOG", "LOG.old", "LOCK"]
    private static let files: Set<String> = [
        "LOCK", "SEQUENCES", "SYNCED", "TIME", "FUNCTIONS", "ORIGINS", ReserveFile.name,
    ]

    mutating func run(_ report: inout CheckReport) {
        var status = stat()
        guard stat(directory, &status) == 0 else { return }
        owner = status.st_uid
        look(directory, "the larder's directory")
        for name in (try? FileSystem.list(directory)) ?? [] {
            let path = directory + "/" + name
            if Self.files.contains(name) { look(path, name) }
            if name == "JOURNAL" { walk(path, name) }
            guard DatabaseCheck.isName(name), case .database = DatabaseDirectory(path) else { continue }
            walk(path, name)
        }
        add(to: &report)
    }

    private func add(to report: inout CheckReport) {
        addProblem(
            foreign, "they belong to another user than the larder (uid \(owner))", "chown them to that user",
            &report)
        addProblem(locked, "their owner cannot read and write them", "give the owner access: chmod u+rwX", &report)
        addProblem(open, "other users can write to them", "remove that right: chmod go-w", &report)
    }

    private func addProblem(_ names: [String], _ what: String, _ remedy: String, _ report: inout CheckReport) {
        guard let first = names.first else { return }
        let one = names.count == 1
        let what =
            one
            ? what.replacing("they belong", with: "it belongs").replacing("their owner", with: "its owner")
                .replacing("them", with: "it") : what
        report.add(
            .manual, one ? first : "\(first) and \(names.count - 1) more", what,
            one ? remedy.replacing("them", with: "it") : remedy)
    }

    private mutating func look(_ path: String, _ name: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return }
        let needed: mode_t = status.st_mode & S_IFMT == S_IFDIR ? 0o700 : 0o600
        if status.st_uid != owner { foreign.append(name) }
        if status.st_mode & needed != needed { locked.append(name) }
        if status.st_mode & 0o022 != 0 { open.append(name) }
    }

    private mutating func walk(_ path: String, _ name: String) {
        look(path, name)
        guard FileSystem.isDirectory(path) else { return }
        for inner in (try? FileSystem.list(path)) ?? [] where !Self.unimportant.contains(inner) {
            walk(path + "/" + inner, name + "/" + inner)
        }
    }
}
