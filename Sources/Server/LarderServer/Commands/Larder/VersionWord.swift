import LarderEngine

extension Call {
    /// Parses a version as returned by CHANGES.
    func version(_ index: Int) throws(CommandError) -> ChangeVersion {
        guard bytes(index).count <= 64, let version = ChangeVersion(text(index)) else {
            throw CommandError(
                "ERR invalid version: must be time-sequence, as returned by CHANGES, or milliseconds since 1970")
        }
        return version
    }
}
