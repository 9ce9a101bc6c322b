import LarderEngine

extension Call {
    /// The word of a version, as CHANGES gives it.
    func version(_ index: Int) throws(CommandError) -> ChangeVersion {
        guard bytes(index).count <= 64, let version = ChangeVersion(text(index)) else {
            throw CommandError("ERR a version is time-sequence, as CHANGES gives it, or milliseconds since 1970")
        }
        return version
    }
}
