internal import AndroidKeyAttestation
internal import AuthContract
internal import Bytes
internal import Foundation

/// Where a list comes from.
enum ListSource: Sendable {
    case url(String)
    case file(String)

    /// A file by its path or `file:` URL; anything else must be https, or http on this machine.
    init?(_ text: String) {
        if text.hasPrefix("file:") {
            guard let url = URL(string: text), url.isFileURL else { return nil }
            self = .file(url.path)
        } else if text.contains("://") {
            // Nobody signs the list: what vouches for it is the connection.
            guard SecureURL.isSecure(text) else { return nil }
            self = .url(text)
        } else {
            guard !text.isEmpty else { return nil }
            self = .file(text)
        }
    }

    /// What asking a source came to.
    enum Answer: Sendable {
        /// A list, and seconds until it is asked for again.
        case list(KeptList, fresh: Int64)
        /// The one that is held is still the current one.
        case unchanged(confirmedAt: UnixTime, fresh: Int64)
    }

    struct Failure: Error, CustomStringConvertible {
        let description: String
        var retryAfter: Int64?
    }

    /// Seconds after which a file is looked at again.
    private static let fileInterval: Int64 = 60

    func fetch(
        over http: ProviderHTTP, held: KeptList?, at now: UnixTime, within limit: Duration
    ) async throws(Failure) -> Answer {
        switch self {
        case .file(let path): try await read(path, held: held, at: now)
        case .url(let url): try await ask(url, over: http, held: held, at: now, within: limit)
        }
    }

    private func read(_ path: String, held: KeptList?, at now: UnixTime) async throws(Failure) -> Answer {
        let contents: (bytes: [UInt8], modifiedAt: UnixTime)?
        do {
            contents = try await onFileThread {
                try boundedContents(of: path, limit: RevocationStatusList.maximumLength)
            }
        } catch { throw Failure(description: "the file cannot be read: \(error.localizedDescription)") }
        guard let contents else { throw Failure(description: "the file is too large") }
        // A file is as old as it is: copying it again is how its keeper says that it is current.
        let confirmed = min(contents.modifiedAt, now)
        if let held, held.bytes == contents.bytes {
            return .unchanged(confirmedAt: confirmed, fresh: Self.fileInterval)
        }
        do {
            let list = try KeptList(parsing: contents.bytes, entityTag: nil, confirmedAt: confirmed)
            return .list(list, fresh: Self.fileInterval)
        } catch { throw Failure(description: "not a status list: \(error)") }
    }

    private func ask(
        _ url: String, over http: ProviderHTTP, held: KeptList?, at now: UnixTime, within limit: Duration
    ) async throws(Failure) -> Answer {
        let request = StatusListRequest(url: url, holding: held?.entityTag)
        let received: ProviderAnswer
        do {
            received = try await http.send(
                ProviderRequest(
                    url: request.url, headers: request.headers, maximumAnswer: RevocationStatusList.maximumLength),
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
            guard held?.entityTag != nil else {
                throw Failure(
                    description: "the server answered 304, and no list is held", retryAfter: received.retryAfter)
            }
            return .unchanged(confirmedAt: confirmed, fresh: answer.freshFor)
        }
    }
}
