package import AuthContract
package import AuthService
internal import StrictJSON

/// The web pages for operators, below `/console` of the operations listener. The listener has checked `Host`.
package protocol OperationsPages: Sendable {
    /// Answers a request. Pages use only `service`: apart from sign-in and sign-out, they change data by calls of the admin API.
    func answer(_ request: PageRequest, with service: PageService) async -> PageAnswer
    /// The page for a request whose form was refused, such as a form that is too large. `request.form` is empty.
    func answer(_ request: PageRequest, refusedWith refusal: Refusal, at now: UnixTime) -> PageAnswer
    /// Reserves one of the limited places for large forms of signed-in people, before the body of the form is read.
    ///
    /// - Returns: the place, which the caller must pass to `leaveForm(_:)`; nil: there is no session.
    /// - Throws: `RATE_LIMITED` if the credential already has the largest number of forms.
    func enterForm(_ request: PageRequest, at now: UnixTime) throws(Refusal) -> String?
    /// Releases the place of a form.
    func leaveForm(_ place: String)
}

/// A request for a page, parsed.
package struct PageRequest: Sendable {
    /// The path below which all pages are.
    package static let base = "/console"
    /// The largest body of a form of a person who is signed in, in bytes: an app record and its fields.
    package static let maximumForm = 320 * 1024
    /// The largest number of forms of `maximumForm` bytes in memory at once. One credential may have fewer.
    static let maximumForms = 6
    /// The largest body of a form of a person who is not signed in, in bytes. The memory for all forms together is limited, and bodies
    /// of this size do not count. So only people with a session can use it up.
    package static let maximumFormOfStrangers = BodyBudget.uncounted
    /// The header that the pages' script sends when it refreshes a page by itself. Such a request does not prolong a session.
    package static let refreshHeader = "X-Synheart-Refresh"
    /// The header that the pages' script sends when it checks a form while the person is still filling it in. Such a
    /// request changes nothing.
    package static let checkHeader = "X-Synheart-Check"

    /// `GET`, `HEAD` or `POST`. HEAD is answered as GET: the listener leaves out the body.
    package var method: String
    /// The path as sent, not decoded.
    package var path: String
    /// The query's fields.
    package var query = PageFields()
    /// The fields of the form in the body of a POST.
    package var form = PageFields()
    /// The values of each cookie name. A name that was sent more than once is not trusted.
    package var cookies: [String: [String]] = [:]
    /// `Host` as sent: one of `operations.hosts`, with its port if it has one.
    package var host: String
    /// The value of `Origin`; nil if the header is absent. Several values are joined, so that the result matches no origin.
    package var origin: String?
    /// The value of `Sec-Fetch-Site`; nil if the header is absent. Several values are joined.
    package var fetchSite: String?
    /// Whether the browser speaks TLS: to this listener, or to a trusted proxy that reports it.
    package var isTLS = false
    /// Whether the page's script refreshes the page by itself.
    package var isRefresh = false
    /// Whether the page's script only checks a form. Always false unless the method is POST.
    package var isCheck = false
    /// The address for which failed sign-ins are counted.
    package var address: ClientAddress

    /// Memberwise initializer of the parts that every request has.
    package init(_ method: String, _ path: String, host: String, from address: ClientAddress) {
        (self.method, self.path, self.host, self.address) = (method, path, host, address)
    }
}

/// The fields of a query or a form, in order (`application/x-www-form-urlencoded`).
package struct PageFields: Sendable, Hashable {
    /// One field, decoded.
    package struct Field: Sendable, Hashable {
        package let name: String
        package let value: String
    }

    /// The largest number of fields in one query or form.
    static let maximum = 512
    private static let maximumName = 64

    package let all: [Field]

    /// Fields from pairs of a name and a value.
    package init(_ fields: [(String, String)] = []) { all = fields.map { Field(name: $0.0, value: $0.1) } }

    /// Parses fields. Refuses too many of them, long names, and escapes that do not decode to UTF-8. Browsers send each line end
    /// of a text as CR LF. The parsed values have LF.
    ///
    /// - Throws: `INVALID_REQUEST`.
    package init(parsing text: String) throws(Refusal) {
        var fields: [Field] = []
        for pair in text.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard fields.count < Self.maximum, let name = Self.decoded(parts[0]),
                let value = parts.count == 2 ? Self.decoded(parts[1]) : "", name.utf8.count <= Self.maximumName
            else {
                let reason = "A query or a form has at most \(Self.maximum) percent-encoded fields"
                throw Refusal(.invalidRequest, reason, hint: reason)
            }
            fields.append(Field(name: name, value: value))
        }
        all = fields
    }

    private static func decoded(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count)
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "+"): bytes.append(UInt8(ascii: " "))
            case UInt8(ascii: "%"):
                let digits = rest.prefix(2)
                guard digits.count == 2, digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }),
                    let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
                else { return nil }
                if value == 0x0A, bytes.last == 0x0D { bytes.removeLast() }
                bytes.append(value)
                rest = rest.dropFirst(2)
            default: bytes.append(byte)
            }
        }
        return String(validating: bytes, as: UTF8.self)
    }

    /// The value of the field with this name; nil unless exactly one field has the name.
    package subscript(_ name: String) -> String? {
        let values = values(name)
        return values.count == 1 ? values[0] : nil
    }

    /// All values of a name, such as those of checkboxes.
    package func values(_ name: String) -> [String] { all.filter { $0.name == name }.map(\.value) }
}

/// The answer of a page.
package struct PageAnswer: Sendable {
    package var status: Int
    /// Nil: there is no body.
    package var body: [UInt8]?
    package var contentType: String
    /// Further header fields, each name once.
    package var headers: [(String, String)]
    package var cacheControl = "no-store"
    /// The path for the log, with the names of parameters in place of values; nil: the request is not logged, such as one for a
    /// stylesheet.
    package var route: String?
    /// The reason why the request was refused, for the log; nil: it was accepted.
    package var refusal: Refusal?

    /// Memberwise initializer.
    package init(
        status: Int = 200, body: [UInt8]? = nil, contentType: String = "text/html; charset=utf-8",
        headers: [(String, String)] = []
    ) {
        (self.status, self.body, self.contentType, self.headers) = (status, body, contentType, headers)
    }
}
