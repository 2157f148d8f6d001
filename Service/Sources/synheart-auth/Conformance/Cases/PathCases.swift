import AuthContract
import Crypto
import StrictJSON

extension ConformanceCase {
    /// Paths and queries that a proxy may change.
    static let paths: [ConformanceCase] = [
        path("path-slashes", "repeated slashes", ["//auth/v1/device/status", "/auth/v1//device/status"]),
        path("path-escaped-slash", "an escaped slash", ["/auth/v1/device%2Fstatus", "/auth/v1/device%2fstatus"]),
        path("path-escaped-letter", "an escaped letter", ["/auth/v1/device/%73tatus"]),
        path("path-parameter", "a path parameter", ["/auth/v1/device/status;a=b", "/auth/v1/device;a/status"]),
        path(
            "path-dot-segments", "dot segments",
            ["/auth/v1/x/../device/status", "/auth/v1/./device/status", "/auth/v1/x/%2e%2e/device/status"]),
        path("path-case", "capital letters", ["/AUTH/v1/device/status", "/auth/v1/device/Status"]),
        path("path-end", "a slash at the end", ["/auth/v1/device/status/"]),
        .init("query-on-write", "Query", "a query on a write is refused, unless the app's policy allows it") { stage in
            let phone = try await stage.phone()
            for query in ["?a=1", "?"] {
                let request = try phone.signed(.token, at: stage.now).to(Route.token.rawValue + query)
                try await stage.refused(request, .invalidRequest, what: query)
            }
        },
        .init("query-kept", "Scheme 2", "a signed query arrives as it was sent") { stage in
            let (phone, origin) = try await stage.schemeTwo()
            try await stage.accepted(
                try phone.signedTwo(
                    "GET", Route.status.rawValue + "?b=%20&a=1&&c", to: origin, at: stage.now))
        },
    ]

    /// A case about paths that a proxy may change into the path of the status route. The first request for each path is signed
    /// for the status route: if a proxy changes the path, the request is wrongly accepted.
    private static func path(_ id: String, _ what: String, _ targets: [String]) -> ConformanceCase {
        .init(id, "Strictness", "a path with \(what) is not the path without") { stage in
            let phone = try await stage.phone()
            for target in targets {
                let request = try phone.signed(.status, at: stage.now).to(target)
                try await stage.stopped(request, what: target)
                // This request is signed for the path that it is sent to. Its answer shows whether the service gets the path unchanged.
                let honest = try phone.signed("GET", target, [], at: stage.now)
                let answer = try await stage.send(honest)
                let isRefused = 400..<500 ~= answer.status && answer.code != ErrorCode.invalidSignature.rawValue
                try stage.require(isRefused, "\(target), signed as it is: came \(answer.text): its path was changed")
            }
        }
    }
}
