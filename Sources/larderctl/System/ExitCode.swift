/// The program's exit codes. Scripts rely on these numbers: do not change them.
enum ExitCode: Int32 {
    /// Success; the result has been written.
    case done = 0
    /// There is no such entry.
    case notFound = 1
    /// The command line is wrong.
    case usage = 2
    /// The daemon cannot be reached, or its replies make no sense.
    case noDaemon = 3
    /// The daemon answered with an error.
    case serverError = 4
    /// The result could not be written, or the value could not be read.
    case inputOutput = 5
    /// There is no value now: its origin failed, or somebody else still fetches it. Or somebody else holds the lock.
    case noValue = 6
    /// The lock was lost while the command ran.
    case lockLost = 7
    /// A backup or a larder is damaged, or a look has found something.
    case damaged = 8
    /// Something was wrong with a larder, and is repaired.
    case repaired = 9
    /// Not everything of a larder could be looked at.
    case unseen = 10

    /// The meaning of each number, for the help.
    static let explanation = """
        0  success
        1  there is no such entry
           shell: a line of standard input has failed; standard error has its number
        2  the command line is wrong
        3  no daemon answers at the socket in time, or the daemon belongs to another user; or no Redis answers
        4  the daemon, or the Redis, answered with an error; standard error has its text
        5  the result could not be written, or the input could not be read
        6  fetch: there is no value now; the command failed, or somebody else still runs it
           lock: somebody else held the lock for as long as --wait
        7  lock: the lock was lost while the command ran
        8  verify, restore: the backup is damaged
           check, doctor: something is wrong
        9  check --repair: something was wrong, and is repaired
        10 check, doctor: not everything could be looked at
        """
}

/// The command line is wrong: the mistake, and the right form.
struct UsageError: Error {
    let message: String
    /// The verb whose help to read, if it was recognized.
    var verb: String?

    init(_ message: String, verb: String? = nil) {
        self.message = message
        self.verb = verb
    }
}

/// Reading the value or writing the result failed.
struct InputOutputError: Error {
    let message: String
}

/// A line of standard input cannot be carried out.
struct LineFailure: Error {
    /// Its number; the first is 1.
    let line: Int
    /// The kind of the error, for programs.
    let code: String
    let message: String
    let exitCode: ExitCode
}

/// A larder's files cannot be looked at.
struct CannotLook: Error {
    let message: String
}

/// A backup is not as it was written.
struct DamagedBackup: Error {
    let message: String
}
