import CLarderEditLine
import LarderClient
import LarderPlatform
import Synchronization

/// Lets the user edit lines on the terminal, with history and completion. Uses libedit.
///
/// For one thread at a time. ``read(prompt:)`` calls the callbacks on its thread.
final class LineEditor {
    enum Event {
        case line(String)
        /// The user has pressed Ctrl-C, and the line was discarded.
        case interrupted
        /// The user has pressed Ctrl-D, or the terminal was closed.
        case end
        /// The program has received a signal to terminate. The terminal's settings are restored.
        case ended(signal: Int32)
    }

    /// What Tab does.
    enum Completion {
        case nothing
        /// Replaces this number of characters before the cursor.
        case replace(characters: Int, with: String)
        /// Shows lines below the cursor.
        case show([String])
    }

    /// The maximum number of lines in the history.
    static let historyMax = 1000

    private let editor: OpaquePointer
    private let history: OpaquePointer
    private let signals: ShellSignals
    private let complete: (String) -> Completion
    private var prompt: UnsafeMutablePointer<CChar>?
    private var event: Event?

    /// - Parameter complete: called when Tab is pressed, with the text before the cursor.
    init(_ signals: ShellSignals, complete: @escaping (String) -> Completion) throws(InputOutputError) {
        self.signals = signals
        self.complete = complete
        Self.chooseCharacters()
        guard let editor = larder_edit_begin("larderctl"), let history = history_init() else {
            throw InputOutputError("the terminal cannot be used for editing")
        }
        (self.editor, self.history) = (editor, history)
        larder_edit_set_context(editor, Unmanaged.passUnretained(self).toOpaque())
        larder_edit_set_prompt(editor) { LineEditor.of($0)?.prompt }
        larder_edit_set_read(editor) { editor, character in LineEditor.of(editor)?.readCharacter(character) ?? -1 }
        larder_edit_set_keys(editor, "emacs")
        larder_edit_bind(editor, "^I", "larder-complete") { editor, _ in
            LineEditor.of(editor)?.pressTab() ?? UInt8(CC_ERROR)
        }
        larder_edit_bind_own(editor, "^R", "em-inc-search-prev")
        larder_edit_set_history(editor, history, CInt(Self.historyMax))
    }

    deinit {
        el_end(editor)
        history_end(history)
        free(prompt)
    }

    /// Makes libedit use UTF-8, even if the locale has another encoding.
    private static func chooseCharacters() {
        setlocale(LC_CTYPE, "")
        if nl_langinfo(nl_item(CODESET)).map({ String(cString: $0) }) != "UTF-8" { setlocale(LC_CTYPE, "C.UTF-8") }
    }

    private static func of(_ editor: OpaquePointer?) -> LineEditor? {
        guard let editor, let context = larder_edit_context(editor) else { return nil }
        return Unmanaged<LineEditor>.fromOpaque(context).takeUnretainedValue()
    }

    func remember(_ line: String) { larder_edit_remember(history, line) }

    /// Lets the user edit a line, and waits for the result.
    func read(prompt text: String) -> Event {
        free(prompt)
        prompt = strdup(text)
        event = nil
        var count: CInt = 0
        guard let line = signals.editing({ el_gets(editor, &count) }), count > 0 else { return event ?? .end }
        var bytes = Array(UnsafeRawBufferPointer(start: line, count: Int(count)))
        if bytes.last == 0x0A { bytes.removeLast() }
        return .line(String(decoding: bytes, as: UTF8.self))
    }

    // MARK: Keys and signals

    /// Waits for a key or a signal. libedit calls it to read a character.
    /// - Returns: 1 if a character was read, 0 at the end of the input, -1 to stop editing.
    private func readCharacter(_ character: UnsafeMutablePointer<wchar_t>?) -> CInt {
        var bytes: [UInt8] = []
        while true {
            let ready = Descriptor.poll(Descriptor.keys, signals.pipe.readEnd)
            if ready[1], let signal = signals.pipe.receive() {
                guard handle(signal) else { return -1 }
                continue
            }
            guard ready[0] else { continue }
            var byte: UInt8 = 0
            let count = systemRead(Descriptor.keys, &byte, 1)
            if count < 0, errno == EINTR || errno == EAGAIN { continue }
            guard count == 1 else { return 0 }
            bytes.append(byte)
            if let scalar = String(validating: bytes, as: UTF8.self)?.unicodeScalars.first {
                character?.pointee = wchar_t(scalar.value)
                return 1
            }
            // Ignore bytes that are not UTF-8.
            if bytes.count == 4 || byte < 0x80 { bytes = [] }
        }
    }

    /// Handles a signal.
    /// - Returns: whether editing continues.
    private func handle(_ signal: Int32) -> Bool {
        switch signal {
        case SIGINT:
            event = .interrupted
            Output.writeToTerminal("^C\n")
            return false
        case SIGWINCH: el_resize(editor)
        case SIGCONT:
            larder_edit_take_terminal(editor, 1)
            larder_edit_refresh(editor)
        case SIGTSTP:
            larder_edit_take_terminal(editor, 0)
            Output.writeToTerminal("\n")
            // Stops the process here until the parent shell resumes it.
            kill(getpid(), SIGSTOP)
            larder_edit_take_terminal(editor, 1)
            larder_edit_refresh(editor)
        default:
            event = .ended(signal: signal)
            larder_edit_take_terminal(editor, 0)
            return false
        }
        return true
    }

    private func pressTab() -> UInt8 {
        guard let line = el_line(editor)?.pointee, let start = line.buffer, let cursor = line.cursor else {
            return UInt8(CC_ERROR)
        }
        let text = String(decoding: UnsafeRawBufferPointer(start: start, count: cursor - start), as: UTF8.self)
        switch complete(text) {
        case .nothing: return UInt8(CC_ERROR)
        case .replace(let characters, let text):
            if characters > 0 { el_deletestr(editor, CInt(characters)) }
            return el_insertstr(editor, text) == 0 ? UInt8(CC_REFRESH) : UInt8(CC_ERROR)
        case .show(let lines):
            Output.writeToTerminal("\n" + lines.map { $0 + "\n" }.joined())
            return UInt8(CC_REDISPLAY)
        }
    }
}

/// Handles the signals of an interactive shell on a separate thread. While a line is edited, the signals are written to
/// a pipe, which the line editor polls together with the keys. At other times, Ctrl-C ends the wait for a reply.
final class ShellSignals: Sendable {
    /// The pipe from which the line editor reads a byte for each signal.
    let pipe: Pipe
    private let state: Locked<(client: BlockingLarderClient?, isEditing: Bool)>
    private let interrupted = Atomic<Bool>(false)

    /// - Parameter client: the client whose wait for a reply Ctrl-C ends; nil if Ctrl-C must terminate the program.
    init(_ client: BlockingLarderClient?) throws(InputOutputError) {
        pipe = try Pipe(for: "signals")
        state = Locked((client, false))
        SignalSet([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH, SIGCONT]).watch { [self] signal in
            state.withLock { take(signal, client: $0.client, isEditing: $0.isEditing) }
        }
    }

    /// Sets the client whose wait for a reply Ctrl-C ends; nil if Ctrl-C must terminate the program.
    func use(_ client: BlockingLarderClient?) { state.withLock { $0.client = client } }

    /// Whether Ctrl-C was pressed since the user last edited a line.
    var isInterrupted: Bool { interrupted.load(ordering: .relaxed) }

    /// Runs `body`, which edits a line and reads signals from the pipe. Handles signals that `body` has not read.
    func editing<Result>(_ body: () -> Result) -> Result {
        state.withLock {
            $0.isEditing = true
            interrupted.store(false, ordering: .relaxed)
            $0.client?.forgetInterruption()
        }
        let result = body()
        state.withLock {
            $0.isEditing = false
            while Descriptor.poll(pipe.readEnd, milliseconds: 0)[0], let signal = pipe.receive() {
                take(signal, client: $0.client, isEditing: false)
            }
        }
        return result
    }

    /// Handles a signal. Called with `state` locked.
    private func take(_ signal: Int32, client: BlockingLarderClient?, isEditing: Bool) {
        if isEditing { return pipe.send(signal) }
        // No line is edited, so the terminal has its original settings, which need not be restored.
        switch signal {
        case SIGINT:
            guard let client else { SignalSet.endProgram(by: signal) }
            interrupted.store(true, ordering: .relaxed)
            client.interrupt()
        case SIGTSTP: kill(getpid(), SIGSTOP)
        case SIGTERM, SIGHUP, SIGQUIT: SignalSet.endProgram(by: signal)
        default: break
        }
    }
}
