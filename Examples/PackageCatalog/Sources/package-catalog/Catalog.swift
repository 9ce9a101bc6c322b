import Larder
import LarderClient

/// Finds the verb, runs it, and turns errors into messages and exit codes.
enum Catalog {
    static let usage = """
        usage: package-catalog VERB [options]

        With the larder opened by this program itself:
          load --directory DIR [--policy P] [--installed FILE] [--available FILE] [--translations FILE]…
                                           store package records; FILE may be - for standard input
          show --directory DIR [--database NAME] [--language CODE] PACKAGE
          search --directory DIR [--database NAME] [--limit N] WORD
                                           which packages have the word in their summary, the largest ones first
          needs --directory DIR [--database NAME] [--limit N] PACKAGE
                                           which packages depend on it
          follow --directory DIR [--database NAME] [--limit N] PACKAGE
                                           follows the first ones while the list changes, with a live query
          sections --directory DIR [--database NAME]
                                           the number of packages in each section, and their size
          snapshot --directory DIR PACKAGE
                                           shows that a snapshot does not see later writes
          batches --directory DIR          writes batch after batch until it is killed
          batches --directory DIR --check  checks that no batch was stored only in part

        With a larder that larderd serves:
          show --socket SOCKET [--database NAME] [--language CODE] KEY

        The databases are 'installed', with keys such as bash:amd64, and 'available', with keys such as
        bash:amd64=5.2.15-2. The default is 'installed'.
        exit codes: 0 success, 1 not found or a check failed, 2 wrong usage, 3 error of the larder or the disk

        """

    /// A requested package or database does not exist, or a check has failed.
    struct NotFound: Error { let message: String }

    /// - Returns: the exit code.
    static func main(_ words: [String]) async -> CInt {
        do {
            var arguments = try Arguments(words)
            switch arguments.verb {
            case "load": try Load.run(&arguments)
            case "show": try Show.run(&arguments)
            case "search": try Search.run(&arguments)
            case "needs": try Needs.run(&arguments)
            case "follow": try await Follow.run(&arguments)
            case "sections": try Sections.run(&arguments)
            case "snapshot": try SnapshotShown.run(&arguments)
            case "batches": try Batches.run(&arguments)
            case "help", "--help", "-h": Console.out(usage, terminator: "")
            default: throw Arguments.Failure(message: "there is no verb '\(arguments.verb)'")
            }
            return 0
        } catch let failure as Arguments.Failure {
            Console.error("\(failure.message)\nTry: package-catalog help")
            return 2
        } catch let missing as NotFound {
            Console.error(missing.message)
            return 1
        } catch {
            Console.error("\(error)")
            return 3
        }
    }
}
