import Foundation
import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of the pages in a browser: they load without errors, make no requests to other servers, and show changes.
@Suite(.timeLimit(.minutes(10))) struct WebBrowserTests {
    /// A daemon with entries of all kinds.
    private func daemon() throws -> DaemonProcess {
        let daemon = try DaemonProcess(["--slowlog-log-slower-than", "0", "--max-disk", "256M"])
        let client = try daemon.connect()
        let json =
            #"{"name":"Middlemarch","price":9,"tags":["novel","1871"],"author":{"name":"George Eliot","born":1819},"id":12345678901234567890}"#
        _ = try client.call(["SET", "book:1", json, "EX", "600", "GRACE", "300", "TAGS", "1", "novel"])
        _ = try client.call(["SET", "book:2", "plain text", "PX", "86400000"])
        _ = try client.call(["SET", "<b>bold</b>", "<script>alert(1)</script>"])
        try client.send(encodeRequest([Array("SET".utf8), [0x62, 0x69, 0x6E, 0xFF], [0, 1, 2, 0xFE]]))
        _ = try client.receive()
        for number in 0..<120 {
            _ = try client.call(["SET", "many:\(1000 + number)", "\(number)", "EX", "\(number * 60 + 30)"])
        }
        _ = try client.call("SELECT sessions")
        for number in 0..<20 { _ = try client.call(["SET", "s\(number)", "x"]) }
        _ = try client.call("LIMIT 32M")
        return daemon
    }

    private func expectClean(_ seen: Browser.Seen, _ web: WebProcess) {
        #expect(seen.problems == [])
        #expect(seen.requests.allSatisfy { $0.hasPrefix(web.address) || $0.hasPrefix("about:") }, "\(seen.requests)")
        #expect(seen.requests.count > 3)
    }

    /// A JavaScript expression for the number of points of a chart's line that are above zero.
    private static func pointsAboveZero(_ line: String) -> String {
        "(\(line)?.getAttribute('d') ?? '').split(/[ML]/).filter((point) => point && !point.endsWith(' 152.0')).length"
    }

    @Test func theOverviewPageIsUpdatedUnderLoad() throws {
        let daemon = try daemon()
        let web = try WebProcess(daemon.socketPath, listen: "127.0.0.1:0")
        let load = try WebLoad(daemon)
        defer { load.stop() }
        let seen = try Browser.run([
            .open(web.address),
            Browser.until("document.querySelectorAll('#databases tbody tr').length >= 2"),
            // The chart of commands has a point that is not zero, and is updated.
            Browser.until(
                Self.pointsAboveZero("document.querySelector('#charts .line')") + " >= 2"
            ),
            .run("globalThis.before = document.querySelector('#charts svg').dataset.points; ''"),
            Browser.until("+document.querySelector('#charts svg').dataset.points > +before"),
            Browser.until(
                "/GET/.test(document.querySelector('#commands').innerText) && ['GET', 'SET'].every((name) => "
                    + "[...document.querySelectorAll('#charts figure')[1].querySelectorAll('.series span')].some("
                    + "(span) => span.textContent === name && "
                    + Self.pointsAboveZero("span.closest('figure').querySelector('.line.' + span.className)") + " > 0))"
            ),
            Browser.until("document.querySelectorAll('#freshness .bar').length >= 2"),
            Browser.until("/larderweb/.test(document.querySelector('#clients').innerText)"),
            .run("String(document.querySelectorAll('#charts svg[aria-label*=now]').length)"),
            .run("document.querySelector('#tiles').innerText"),
            .run("document.querySelector('#slow tbody').innerText"),
            .run("document.querySelector('input[value=day]').click(); ''"),
            Browser.until("+document.querySelector('#charts svg').dataset.points <= 3"),
            .run("document.querySelector('#theme').click(); getComputedStyle(document.body).backgroundColor"),
            .run("document.querySelector('#theme').click(); getComputedStyle(document.body).backgroundColor"),
        ])
        expectClean(seen, web)
        #expect(seen.values[7] == "9", "each chart has a text description")
        #expect(seen.values[8]?.contains("Hit ratio") ?? false)
        #expect(seen.values[9]?.contains("SET") ?? false)
        #expect(Set(seen.values.suffix(2)) == ["rgb(18, 22, 27)", "rgb(246, 247, 249)"])
    }

    @Test func anEmptyLarderShowsThreeCommands() throws {
        let daemon = try DaemonProcess()
        let web = try WebProcess(daemon.socketPath, listen: "127.0.0.1:0")
        let seen = try Browser.run([
            .open(web.address), Browser.until("!document.querySelector('#first').hidden"),
            .run("document.querySelector('#first pre').textContent"),
        ])
        expectClean(seen, web)
        let lines = try #require(seen.values.last ?? nil).split(separator: "\n").map(String.init)
        #expect(lines.count == 3)
        // The commands work as they are.
        let tool = try DaemonProcess.program("larderctl")
        let answers = try lines.map { line in
            try ChildProcess.run(tool, line.split(separator: " ").dropFirst().map(String.init)).output
        }
        #expect(answers[0] == "OK\n" && answers[1].hasPrefix("hello") && (Double(answers[2].dropLast()) ?? 0) > 0)
        _ = try Browser.run([
            .open(web.address), Browser.until("document.querySelectorAll('#databases tbody tr').length == 1"),
            Browser.until("document.querySelector('#first').hidden"),
        ])
    }

    @Test("values are shown as JSON, text or hexadecimal digits") func entriesAreShownByTheirType() throws {
        let daemon = try daemon()
        let web = try WebProcess(daemon.socketPath, listen: "127.0.0.1:0")
        let keys = "[...document.querySelectorAll('#keys button.key')].map((b) => b.textContent).join(' ')"
        func open(_ key: String) -> [Browser.Step] {
            [
                .run(
                    "[...document.querySelectorAll('#keys button.key')].find((b) => b.textContent === '\(key)').click(); ''"
                ),
                Browser.until("document.querySelector('#entry-key').textContent === '\(key)'"),
                .run("document.querySelector('#value').innerText"),
                .run("document.querySelector('#life').getAttribute('aria-label')"),
            ]
        }
        let seen = try Browser.run(
            [.open(web.address + "entries?database=0"), .run(keys)] + open("<b>bold</b>") + open("0x62696eff")
                + open("book:1")
                + [
                    .run("String(document.querySelectorAll('#value details[open]').length)"),
                    .run("String(document.querySelectorAll('#life .grace').length)"),
                    .run(
                        "String(document.querySelector('#changes').hidden && document.querySelector('#purges').hidden)"),
                    // Keyboard: the key `/` moves the focus to the search field, and a prefix is searched for.
                    .run("document.activeElement.blur(); ''"), .key("/"), .run("document.activeElement.id"),
                    .run(
                        "document.querySelector('#prefix').value = 'many:'; document.querySelector('#search').requestSubmit(); ''"
                    ),
                    Browser.until(
                        "document.querySelector('#keys button.key')?.textContent === 'many:1000'", then: keys),
                    .run("document.querySelector('#next').click(); ''"),
                    Browser.until("document.querySelector('#page').textContent === 'page 2'", then: keys),
                    .run("document.querySelector('#next').click(); ''"),
                    Browser.until("document.querySelector('#page').textContent === 'page 3'", then: keys),
                    .run("document.querySelector('#back').click(); document.querySelector('#page').textContent"),
                ])
        expectClean(seen, web)
        let values = seen.values.compactMap { $0 }
        #expect(values[0].hasPrefix("<b>bold</b> 0x62696eff book:1 book:2 many:1000"))
        #expect(values[3] == "<script>alert(1)</script>")
        #expect(values[7].hasPrefix("000000  00 01 02 fe"))
        #expect(values[11].contains("Middlemarch") && values[11].contains("George Eliot"))
        #expect(values[11].contains("12345678901234567890"), "a long number keeps its digits")
        #expect(values[12].contains("kept until"))
        #expect(Array(values[13...15]) == ["3", "1", "true"])
        #expect(values.contains("prefix"))
        let pages = values.filter { $0.hasPrefix("many:") }
        #expect(pages.count == 3 && Set(pages.flatMap { $0.split(separator: " ") }).count == 120)
        #expect(values.last == "page 2")
    }

    @Test func changesInTheBrowserNeedAConfirmation() throws {
        let daemon = try daemon()
        let web = try WebProcess(daemon.socketPath, ["--allow-changes"], listen: "127.0.0.1:0")
        let client = try daemon.connect()
        func answer(_ button: String, _ typed: String?) -> [Browser.Step] {
            [
                .run("document.querySelector('\(button)').click(); String(document.querySelector('#question').open)"),
                .run("document.querySelector('#question-input').value = '\(typed ?? "")'; ''"),
                .run("document.querySelector('#question-yes').click(); ''"),
            ]
        }
        let seen = try Browser.run(
            [
                .open(web.address + "entries?database=0&prefix=book:&key=book:2"),
                .run(
                    "document.querySelector('#policy').value = 'never'; document.querySelector('#change').click(); ''"),
                Browser.until("/never/.test(document.querySelector('#facts').innerText)"),
                // Nothing is deleted without a confirmation.
                .run(
                    "document.querySelector('#delete').click(); document.querySelector('#question button').click(); ''"),
            ] + answer("#delete", nil) + [
                Browser.until("/was removed/.test(document.querySelector('#status').textContent)")
            ]
                + answer("#purge-tag", "novel")
                + [Browser.until("/entries with the tag/.test(document.querySelector('#status').textContent)")]
                + [.run("document.querySelector('#database').value = 'sessions'; ''")]
                + answer("#purge-database", "wrong")
                + [
                    Browser.until(
                        "!document.querySelector('#problem').hidden",
                        then: "document.querySelector('#problem').textContent")
                ]
                + answer("#purge-database", "sessions")
                + [Browser.until("/was emptied/.test(document.querySelector('#status').textContent)")])
        // The refused purge is the only problem in the log.
        #expect(seen.problems.allSatisfy { $0.contains("/api/purge") } && seen.problems.count == 1, "\(seen.problems)")
        #expect(seen.values.contains { $0?.contains("confirm must be") ?? false })
        #expect(try client.call("EXISTS book:1 book:2") == ":0\r\n")
        #expect(try client.call("EXISTS many:1000") == ":1\r\n")
        _ = try client.call("SELECT sessions")
        #expect(try client.call("DBSIZE") == ":0\r\n")
    }

    /// The page shows the requested entry, even if its key is very long or changes the text direction.
    @Test("long keys and keys with control characters are shown safely")
    func longAndUnusualKeysAreShownSafely() throws {
        let daemon = try daemon()
        let client = try daemon.connect()
        _ = try client.call(["SET", "book:x" + String(repeating: "l", count: 6_000), "v"])
        _ = try client.call(["SET", "book:y\u{202E}gnp.exe", "v"])
        let web = try WebProcess(daemon.socketPath, ["--allow-changes"], listen: "127.0.0.1:0")
        func click(_ start: String) -> Browser.Step {
            .run(
                "[...document.querySelectorAll('#keys button.key')].find((b) => b.textContent.startsWith('\(start)')).click(); ''"
            )
        }
        let seen = try Browser.run([
            .open(web.address), Browser.until("document.body.dataset.ready === 'yes'"), .key("/"),
            Browser.until("location.pathname === '/entries' && document.activeElement?.id === 'prefix'"),
            .open(web.address + "entries?database=0&prefix=book:"),
            Browser.until("document.querySelectorAll('#keys button.key').length === 4"),
            click("book:1"), Browser.until("!document.querySelector('#entry').hidden"),
            click("book:x"), Browser.until("!document.querySelector('#problem').hidden"),
            .run("String(document.querySelector('#entry').hidden)"),
            click("book:y"), Browser.until("!document.querySelector('#entry').hidden"),
            .run("document.querySelector('#entry-key').textContent"),
            .run("document.querySelector('#delete').click(); document.querySelector('#question-text').textContent"),
        ])
        expectClean(seen, web)
        let values = seen.values.compactMap { $0 }
        #expect(values.contains("true"))
        #expect(values.contains(#"book:y\u202egnp.exe"#), "\(values)")
        #expect(values.last == #"book:y\u202egnp.exe in database 0"#)
    }

    @Test("queries are run and explained, and indexes are created and dropped")
    func queriesAndIndexesAreShown() throws {
        let daemon = try daemon()
        let client = try daemon.connect()
        for number in 0..<120 {
            _ = try client.call(["SET", "doc:\(1000 + number)", #"{"title":"<b>\#(number)</b>","year":\#(number)}"#])
        }
        let web = try WebProcess(daemon.socketPath, ["--allow-changes"], listen: "127.0.0.1:0")
        func submit(_ form: String, _ fields: [(String, String)]) -> Browser.Step {
            let values = fields.map { "document.querySelector('#\($0)').value = '\($1)'; " }.joined()
            return .run(values + "document.querySelector('#\(form)').requestSubmit(); ''")
        }
        let rows = "document.querySelector('#rows').innerText"
        let place = "document.querySelector('#page').textContent"
        let query = "SELECT 1 title WHERE title PREFIX \"<b>\" SORT year SKIP 1"
        let seen = try Browser.run([
            .open(web.address + "queries?database=0&query=LIMIT+3"),
            // The query of a link is not run.
            .run("document.querySelector('#words').value + document.querySelector('#result').hidden"),
            submit("create", [("name", "byYear"), ("definition", "ON year")]),
            Browser.until("/byYear\\s+year\\s+ready\\s/.test(document.querySelector('#indexes').innerText)"),
            submit("search", [("words", query)]),
            Browser.until("\(place) === 'page 1'", then: rows),
            Browser.until("!document.querySelector('#explanation').hidden"),
            .run("document.querySelector('#explanation').textContent"),
            .run("document.querySelector('#next').click(); ''"),
            Browser.until("\(place) === 'page 2'", then: rows),
            .run(
                "document.querySelector('#next').disabled + ' ' + document.querySelector('#rows a').getAttribute('href')"
            ),
            .run("document.querySelector('#back').click(); ''"), Browser.until("\(place) === 'page 1'", then: rows),
            submit("search", [("words", "WHER a")]),
            Browser.until(
                "!document.querySelector('#problem').hidden", then: "document.querySelector('#problem').textContent"),
            .run(
                "document.querySelector('#indexes button').click(); document.querySelector('#question-yes').click(); ''"
            ),
            Browser.until("/no indexes/.test(document.querySelector('#indexes').innerText)"),
            .open(web.address + "queries?database=sessions", width: 360, height: 740),
            .run("String(document.documentElement.scrollWidth)"),
        ])
        // The refused query is the only problem in the log: it was requested twice.
        #expect(
            seen.problems.allSatisfy { $0.contains("/api/query") || $0.contains("/api/explain") }, "\(seen.problems)")
        let values = seen.values.compactMap { $0 }.filter { !$0.isEmpty }
        try #require(values.count == 8, "\(values)")
        #expect(values[0] == "LIMIT 3true")
        #expect(
            values[1].hasPrefix("KEY\ttitle\ndoc:1001\t\"<b>1</b>\"\n") && values[1].split(separator: "\n").count == 101
        )
        #expect(values[2].contains("byYear"))
        #expect(values[3].hasPrefix("KEY\ttitle\ndoc:1101\t") && values[3].split(separator: "\n").count == 20)
        #expect(values[4] == "true /entries?database=0&key=doc%3A1101")
        #expect(values[5] == values[1] && values[6].hasPrefix("ERR ") && values[6].contains("did you mean WHERE?"))
        #expect(values[7] == "360")
        #expect(try client.call("INDEX") == "*0\r\n")
    }

    @Test func blankKeysAreShownAsBytes() throws {
        let daemon = try daemon()
        let client = try daemon.connect()
        for key in [" ", "\u{3164}", ""] { _ = try client.call(["SET", key, "v"]) }
        let web = try WebProcess(daemon.socketPath, listen: "127.0.0.1:0")
        var steps: [Browser.Step] = []
        for (key, label) in [("%20", "0x20"), ("%E3%85%A4", "0xe385a4")] {
            let button = "document.querySelector('#keys button.key')"
            steps += [
                .open(web.address + "entries?database=0&prefix=" + key),
                Browser.until("\(button)?.textContent === '\(label)'"),
                .run("String(\(button).getBoundingClientRect().width > 10)"), .run("\(button).click(); ''"),
                Browser.until("document.querySelector('#entry-key').textContent === '\(label)'"),
            ]
        }
        let seen = try Browser.run(steps)
        expectClean(seen, web)
        #expect(seen.values.compactMap { $0 }.filter { $0 == "true" }.count == 2, "\(seen.values)")
    }

    @Test func labelsOfTheVerticalAxisAreNotCut() throws {
        let daemon = try daemon()
        let web = try WebProcess(daemon.socketPath, listen: "127.0.0.1:0")
        let seen = try Browser.run([
            .open(web.address), Browser.until("document.querySelector('#charts svg text')"),
            .run(
                "import('/charts.js').then(({ TimeChart }) => { const series = [{ label: 'x', value: (p) => p.value }]; "
                    + "globalThis.wide = new TimeChart(document.querySelector('#charts'), 'wide', series, (v) => `${v} per s`); "
                    + "wide.show([1, 2].map((time) => ({ time, value: time * 1e6, commands: 1 }))); }); ''"),
            Browser.until("globalThis.wide?.drawing.querySelectorAll('text').length > 2"),
            .run(
                "String([...wide.drawing.querySelectorAll('text[text-anchor=end]')].every((one) => one.getBBox().x >= 0))"
            ),
            .run("String([...wide.drawing.querySelectorAll('.grid')].every((one) => +one.getAttribute('x1') > 60))"),
        ])
        expectClean(seen, web)
        #expect(seen.values.compactMap { $0 }.suffix(2) == ["true", "true"], "\(seen.values)")
    }

    /// On a narrow screen nothing is cut off, and a browser without a token gets the login page.
    @Test("narrow screens show everything, and a browser without a token gets the login page")
    func narrowScreensShowEverything() throws {
        let daemon = try daemon()
        let client = try daemon.connect()
        _ = try client.call("SELECT " + String(repeating: "w", count: 64))
        _ = try client.call("SET k v")
        let place = try TemporaryDirectory(inMemory: true)
        try Files.write(place.path + "/token", Array("0123456789abcdef\n".utf8))
        chmod(place.path + "/token", 0o600)
        let web = try WebProcess(daemon.socketPath, ["--token-file", place.path + "/token"], listen: "127.0.0.1:0")
        let width = "String(document.documentElement.scrollWidth)"
        let seen = try Browser.run([
            .open(web.address, width: 360, height: 740), .run("location.pathname"), .run(width),
            .run(
                "document.querySelector('#token').value = '0123456789abcdef'; document.querySelector('form').requestSubmit(); ''"
            ),
            Browser.until("location.pathname === '/' && document.body?.dataset.ready === 'yes'"), .run(width),
            .open(web.address + "entries?database=0&key=book:1", width: 360, height: 740),
            Browser.until("document.body.dataset.ready === 'yes' && document.querySelector('#database').length === 3"),
            .run(width),
        ])
        #expect(seen.problems == [])
        #expect(seen.values[0] == "/login")
        #expect([1, 4, 6].allSatisfy { seen.values[$0] == "360" }, "\(seen.values)")
    }
}

/// A client that uses a daemon until ``stop()``.
private final class WebLoad {
    private let isOver = Guarded(false)
    private var thread: WorkThread?

    init(_ daemon: DaemonProcess) throws {
        let client = try daemon.connect()
        let work = UncheckedClient(client: client)
        thread = WorkThread(name: "web-load") { [isOver] in
            var number = 0
            while !isOver.value {
                number += 1
                _ = try? work.client.call("SET load:\(number % 50) \(number) EX 60")
                _ = try? work.client.call("GET load:\(number % 80)")
            }
        }
    }

    /// `@unchecked Sendable`: only the thread uses it.
    private struct UncheckedClient: @unchecked Sendable {
        let client: SocketClient
    }

    func stop() {
        isOver.value = true
        thread?.join()
        thread = nil
    }
}
