import CLarderWebPages
import LarderPlatform

/// The web pages, which are embedded in the program.
enum Pages {
    private struct Page: Sendable {
        let type: String
        let bytes: ConstantBytes
        let tag: String
    }

    private static let all: [String: Page] = {
        var pages: [String: Page] = [:]
        while let page = larder_web_page_at(pages.count)?.pointee {
            let memory = UnsafeRawBufferPointer(start: page.bytes, count: page.length)
            // FNV-1a: good enough to distinguish versions of one file.
            let hash = memory.reduce(UInt64(0xcbf2_9ce4_8422_2325)) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
            pages[String(cString: page.path)] = Page(
                type: String(cString: page.type), bytes: ConstantBytes(memory: memory),
                tag: "\"\(String(hash, radix: 16))\"")
        }
        return pages
    }()

    /// Returns the response to a request for a page; nil if there is no such page.
    static func respond(_ request: HTTPRequest) -> HTTPResponse? {
        guard let page = all[request.target.path] else { return nil }
        // Browsers revalidate the page with each request, so that a new version is shown at once.
        let headers = [("ETag", page.tag)]
        if request.header("if-none-match") == page.tag {
            return HTTPResponse(status: 304, type: page.type, .bytes([]), cache: "no-cache", headers: headers)
        }
        return HTTPResponse(type: page.type, .constant(page.bytes), cache: "no-cache", headers: headers)
    }
}
