import Foundation
import LarderPlatform
import LarderTestSupport
import Testing

/// Headless Chromium, controlled by Programs/browse.py.
enum Browser {
    enum Step: Encodable {
        case open(String, width: Int = 1200, height: Int = 900, dark: Bool = false)
        /// A JavaScript expression. If its value is a promise, its result is awaited.
        case run(String)
        case key(String)
        case shoot(String)

        private enum Key: String, CodingKey {
            case open, width, height, dark, run, key, shoot
        }

        func encode(to encoder: any Encoder) throws {
            var object = encoder.container(keyedBy: Key.self)
            switch self {
            case .open(let address, let width, let height, let dark):
                try object.encode(address, forKey: .open)
                try object.encode(width, forKey: .width)
                try object.encode(height, forKey: .height)
                try object.encode(dark, forKey: .dark)
            case .run(let text): try object.encode(text, forKey: .run)
            case .key(let name): try object.encode(name, forKey: .key)
            case .shoot(let path): try object.encode(path, forKey: .shoot)
            }
        }
    }

    struct Seen: Decodable {
        /// The results of the expressions, as text.
        let values: [String?]
        /// Errors and warnings of the console and of page loads.
        let problems: [String]
        let requests: [String]
    }

    /// Runs steps in one page, in order. Fails if chromium is missing.
    static func run(_ steps: [Step]) throws -> Seen {
        let program = try #require(
            WebTools.path("chromium") ?? WebTools.path("chromium-browser"),
            "chromium is missing: `make proofs` installs Debian's package")
        let place = try TemporaryDirectory(inMemory: true)
        let (end, output, errors) = try ChildProcess.run(
            "python3", [WebTools.programs + "/browse.py", program, place.path + "/profile"],
            input: Array(try JSONEncoder().encode(steps)))
        try #require(end == .exited(0), "\(errors)")
        return try JSONDecoder().decode(Seen.self, from: Data(output.utf8))
    }

    /// An expression that waits until a condition is true.
    static func until(_ condition: String, then value: String = "''") -> Step {
        .run(
            """
            new Promise((done, failed) => {
              const end = setTimeout(() => failed(new Error(document.body.innerText.slice(0, 2000))), 30000);
              const look = () => { if (\(condition)) { clearTimeout(end); done(String(\(value))); } else { setTimeout(look, 20); } };
              look();
            })
            """)
    }
}
