internal import AuthServer
internal import Foundation

/// All pages, and the lookup by path.
enum PageTable {
    /// Every page behind the sign-in.
    static let all: [any ConsolePage] =
        [
            NowPage(), AppListPage(), AppPage(), AppChangePage(), SetUpPage(), FirstDevicePage(), HistoryPage(),
            HistoryDownloadPage(),
            RefusalListPage(), RefusalPage(), RefusalErasePage(), DeviceListPage(), DevicePage(), BulkDecisionPage(),
            AuditPage(), AuditVerificationPage(), AuditArchivePage(), AccessPage(), CredentialCreationPage(),
            CredentialRevocationPage(),
            SigningKeyRotationPage(), SigningKeyRevocationPage(), WebhookCreationPage(), WebhookPage(), AccountPage(),
        ] + DeviceChange.allCases.map { DeviceChangePage(change: $0) }
        + WebhookAction.allCases.map { WebhookActionPage(change: $0) }

    /// The links at the top of each page. A link whose `needs` is not nil is shown only to people who may make that call.
    static let navigation: [(title: String, path: String, needs: AdminRoute?)] = [
        ("Now", "", nil), ("Apps", "/apps", .listApps), ("History", "/history", .showHistory),
        ("Refusals", "/refusals", .listRecordings), ("Devices", "/devices", .listDevices),
        ("Audit", "/audit", .queryAudit), ("Access", "/access", .listSigningKeys),
    ]

    /// Whether a link at the top is marked as current on a page: it leads to this page, or to a path above the page's
    /// path.
    ///
    /// - Parameters:
    ///   - link: the path of the link, as in `navigation`.
    ///   - path: the page's path below `/console`, as sent.
    static func isCurrent(_ link: String, at path: String) -> Bool {
        // The page that sets up an app marks the link `/apps` as current, although its path does not begin with `/apps`.
        let path = path == "/set-up" ? "/apps" : path
        return path == link || !link.isEmpty && path.hasPrefix(link + "/")
    }

    /// Finds the page for a path, and decodes the values of the parameters in the path. Returns nil if no page has this
    /// path.
    ///
    /// - Parameter path: below `/console`, as sent.
    static func find(_ path: String) -> (page: any ConsolePage, parameters: [String: String])? {
        let path = path == "/" ? "" : path
        for page in all {
            if let parameters = parameters(of: path, as: page.path) { return (page, parameters) }
        }
        return nil
    }

    private static func parameters(of path: String, as template: String) -> [String: String]? {
        let (parts, expected) = (split(path), split(template))
        guard parts.count == expected.count else { return nil }
        var parameters: [String: String] = [:]
        for (part, expected) in zip(parts, expected) {
            if expected.hasPrefix("{") {
                guard let value = part.removingPercentEncoding, !value.isEmpty, !value.utf8.contains(0) else {
                    return nil
                }
                parameters[String(expected.dropFirst().dropLast())] = value
            } else if part != expected {
                return nil
            }
        }
        return parameters
    }

    private static func split(_ path: String) -> [String] {
        path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    }
}
