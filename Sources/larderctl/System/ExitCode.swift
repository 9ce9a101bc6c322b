import LarderPlatform
import LarderServices

/// The program's exit codes. Scripts rely on these numbers: do not change them.
enum ExitCode: Int32 {
    /// Success: the result was written.
    case done = 0
    /// The entry does not exist.
    case notFound = 1
    /// The command line is wrong, or the directory to check is not a larder.
    case usage = 2
    /// The daemon is not available, or its reply is malformed.
    case noDaemon = 3
    /// The daemon returned an error.
    case serverError = 4
    /// The result could not be written, or the value could not be read.
    case inputOutput = 5
    /// `fetch`: there is no value now, because COMMAND failed or another client is still fetching. `lock`: another
    /// process holds the lock.
    case noValue = 6
    /// `lock`: the lock was lost while COMMAND ran.
    case lockLost = 7
    /// A backup or a larder is damaged, or a check has a finding.
    case damaged = 8
    /// A larder was damaged, and was repaired.
    case repaired = 9
    /// No problem was found, but not everything could be checked.
    case unseen = 10

    /// The meaning of all exit codes, for the help.
    static let explanation = """
        0  success
        1  there is no such entry
           shell: a line of standard input has failed; standard error has its number
        2  the command line is wrong
           check: the directory is not a larder
        3  no daemon replies at the socket in time, or the daemon belongs to another user; or no Redis replies
        4  the daemon, or the Redis, returned an error; standard error has its text
        5  the result could not be written, or the input could not be read
        6  fetch: there is no value now; the command failed, or another client still runs it
           lock: the lock was not free within --wait
        7  lock: the lock was lost while the command ran
        8  verify, restore: the backup is damaged
           check, doctor: there are findings
        9  check --repair: there were problems, and they are repaired
        10 check, doctor: not everything could be checked
        """
}

typealias UsageError = LarderServices.UsageError

/// The error if a value cannot be read, or a result cannot be written.
struct InputOutputError: Error {
    let message: String

    init(message: String) { self.message = message }

    /// The error after a failed system call: the problem and the reason.
    init(_ problem: String, number: Int32 = errno) { message = "\(problem): \(SystemErrorText.of(number))" }
}
