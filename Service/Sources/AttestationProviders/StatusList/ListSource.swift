internal import AndroidKeyAttestation
internal import AuthContract
internal import AuthService
internal import Bytes
internal import Foundation

/// The source of a revocation list.
enum ListSource: Sendable {
    case url(String)
    case file(String)

    /// Parses the path or `file:` URL of a file, an https URL, or an http URL of this machine. Nil for any other text.
    init?(_ text: String) {
        if text.hasPrefix("file:") {
            guard let url = URL(string: text), url.isFileURL else { return nil }
            self = .file(url.path)
        } else if text.contains("://") {
            // The list is not signed. TLS alone authenticates it.
            guard SecureURL.isSecure(text) else { return nil }
            self = .url(text)
        } else {
            guard !text.isEmpty else { return nil }
            self = .file(text)
        }
    }

    /// The result of a fetch.
    enum Fetched: Sendable {
        /// A list, and seconds until the next fetch.
        case list(KeptList, fresh: Int64)
        /// The present list is still current.
        case unchanged(confirmedAt: UnixTime, fresh: Int64)
    }

    struct Failure: Error, CustomStringConvertible {
        let description: String
        var retryAfter: Int64?
    }

    /// Seconds after which a file is read again.
    private static let fileInterval: Int64 = 60

    func fetch(
        over http: ProviderHTTP, current: KeptList?, at now: UnixTime, within limit: Duration
    ) async throws(Failure) -> Fetched {
        switch self {
        case .file(let path): try await read(path, current: current, at: now)
        case .url(let url): try await ask(url, over: http, current: current, at: now, within: limit)
        }
    }

    private func read(_ path: String, current: KeptList?, at now: UnixTime) async throws(Failure) -> Fetched {
        let contents: (bytes: [UInt8], modifiedAt: UnixTime)?
        do {
            contents = try await offloading {
                try boundedContents(of: path, limit: RevocationStatusList.maximumLength)
            }
        } catch { throw Failure(description: "the file cannot be read: \(error.localizedDescription)") }
        guard let contents else { throw Failure(description: "the file is too large") }
        // The modification time is the time of the confirmation, because the operator confirms a list by writing the file again.
        let confirmed = min(contents.modifiedAt, now)
        if let current, current.bytes == contents.bytes {
            return .unchanged(confirmedAt: confirmed, fresh: Self.fileInterval)
        }
        do {
            let list = try KeptList(parsing: contents.bytes, entityTag: nil, confirmedAt: confirmed)
            return .list(list, fresh: Self.fileInterval)
        } catch { throw Failure(description: "not a status list: \(error)") }
    }

    private func ask(
        _ url: String, over http: ProviderHTTP, current: KeptList?, at now: UnixTime, within limit: Duration
    ) async throws(Failure) -> Fetched {
        let request = StatusListRequest(url: url, holding: current?.entityTag)
        let received: ProviderResponse
        do {
            received = try await http.send(
                ProviderRequest(
                    call: .revocationList, url: request.url, headers: request.headers,
                    maximumResponse: RevocationStatusList.maximumLength),
                within: limit)
        } catch { throw Failure(description: "\(error)") }
        let answer: StatusListAnswer
        do {
            answer = try StatusListAnswer(status: received.status, headers: received.headers, body: received.body)
        } catch { throw Failure(description: error.reason, retryAfter: received.retryAfter) }
        let confirmed = now - answer.age
        switch answer.content {
        case .list(let list):
            let kept = KeptList(list, bytes: received.body, entityTag: answer.entityTag, confirmedAt: confirmed)
            return .list(kept, fresh: answer.freshFor)
        case .unchanged:
            guard current?.entityTag != nil else {
                throw Failure(
                    description: "the server answered 304, and no list is held", retryAfter: received.retryAfter)
            }
            return .unchanged(confirmedAt: confirmed, fresh: answer.freshFor)
        }
    }
}
