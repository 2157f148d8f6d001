internal import AuthContract
internal import AuthServer
internal import StrictJSON

/// One page of the console. All pages are in `PageTable.all`.
protocol ConsolePage: Sendable {
    /// The path below `/console`, with parameters in braces, such as `/devices/{app_id}/{device_id}`. Empty: the first page.
    var path: String { get }
    /// The call that the page depends on. A person who may not make this call gets 403. Nil: the page depends on no call.
    var needs: AdminRoute? { get }

    /// The page.
    func show(_ visit: Visit) async throws -> Page
    /// Performs the action of the page's form. The console has already checked the origin and the form's token.
    func submit(_ visit: Visit) async throws -> PageResult
    /// A page with the problems of a form that the person is still filling in. Changes nothing.
    func check(_ visit: Visit) async throws -> Page
    /// The page for a form that the console is too busy to process. It contains the text that the person typed, and makes no
    /// call. Nil: the general page of the refusal.
    func submit(_ visit: Visit, refusedWith refusal: PageRefusal) throws(PageRefusal) -> Page?
}

extension ConsolePage {
    var needs: AdminRoute? { nil }

    func submit(_ visit: Visit, refusedWith refusal: PageRefusal) throws(PageRefusal) -> Page? { nil }

    func check(_ visit: Visit) async throws -> Page {
        throw PageRefusal(status: 405, title: "This page checks no form", message: "Send the form instead.")
    }

    func submit(_ visit: Visit) async throws -> PageResult {
        throw PageRefusal(status: 405, title: "This page has no form", message: "Go back, and try again from there.")
    }
}

/// A page to be rendered.
struct Page: Sendable {
    /// The first words of the window's title. Many templates also use it as the heading.
    let title: String
    /// The name of the template in `Templates.all`.
    let template: String
    var values: [String: PageValue]
    var status = 200
    /// Seconds between the script's refreshes of the parts of the page marked `data-live`; nil: it never refreshes them.
    var refresh: Int?
    /// A file instead of the page; nil: none.
    var download: Download?

    init(_ title: String, _ template: String, _ values: [String: PageValue], status: Int = 200, refresh: Int? = nil) {
        (self.title, self.template, self.values) = (title, template, values)
        (self.status, self.refresh) = (status, refresh)
    }

    /// A file, which browsers save.
    init(download: Download) {
        self.init(download.name, "", [:])
        self.download = download
    }
}

/// A file that a browser saves.
struct Download: Sendable {
    /// ASCII letters, digits, dots and hyphens.
    let name: String
    let contentType: String
    let bytes: [UInt8]
}

/// The result of a form.
enum PageResult: Sendable {
    case page(Page)
    /// Redirects to this path, which begins with `/console`.
    case redirect(String)
}

/// A page that explains why the requested one is not shown.
struct PageRefusal: Error, Hashable {
    let status: Int
    let title: String
    let message: String
    /// Seconds until a retry may succeed; nil: unknown.
    var retryAfter: Int64?
    /// The reason for the log, which names no device; nil: title and message.
    var reason: String?
}

/// The admin API refused a call.
struct CallRefused: Error, Hashable {
    let status: Int
    /// The error code.
    let code: String
    /// The API's own sentence. It may name a device.
    let message: String
    /// The API's reason for the log, which names no device.
    let reason: String?

    init(_ answer: AdminResponse) {
        reason = answer.reason
        status = answer.status
        code = answer.body["error"]?.string ?? "INTERNAL_ERROR"
        message = answer.body["message"]?.string ?? "The service answered \(answer.status)."
    }
}
