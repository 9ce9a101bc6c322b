/// An SVG image. Its background is white, so that the texts are readable on light and on dark pages.
struct SVG {
    let width: Int
    private var shapes: [String] = []

    init(width: Int) { self.width = width }

    mutating func text(_ x: Int, _ y: Int, _ words: String, anchor: String = "start", isBold: Bool = false) {
        let safe = words.replacing("&", with: "&amp;").replacing("<", with: "&lt;")
        let style = (anchor == "start" ? "" : " text-anchor=\"\(anchor)\"") + (isBold ? " font-weight=\"bold\"" : "")
        shapes.append("<text x=\"\(x)\" y=\"\(y)\"\(style)>\(safe)</text>")
    }

    mutating func bar(_ x: Int, _ y: Int, _ width: Int, _ height: Int, _ color: String) {
        shapes.append("<rect x=\"\(x)\" y=\"\(y)\" width=\"\(width)\" height=\"\(height)\" fill=\"\(color)\"/>")
    }

    /// - Parameter dashes: the lengths of dashes and gaps; empty for a solid line.
    mutating func line(_ points: [(x: Int, y: Int)], _ color: String, width: Int = 2, dashes: String = "") {
        let path = points.map { "\($0.x),\($0.y)" }.joined(separator: " ")
        let style = dashes.isEmpty ? "" : " stroke-dasharray=\"\(dashes)\""
        shapes.append(
            "<polyline points=\"\(path)\" fill=\"none\" stroke=\"\(color)\" stroke-width=\"\(width)\"\(style)/>")
    }

    func document(height: Int) -> String {
        """
        <svg xmlns="http://www.w3.org/2000/svg" width="\(width)" height="\(height)"
          font-family="Helvetica, sans-serif" font-size="13">
        <rect width="100%" height="100%" fill="white"/>
        \(shapes.joined(separator: "\n"))
        </svg>

        """
    }
}
