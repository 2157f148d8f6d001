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
        return .list(try Self.list(contents.bytes, nil, confirmed), fresh: Self.fileInterval)
    }

    private func ask(
        _ url: String, over http: ProviderHTTP, held: KeptList?, at now: UnixTime, within limit: Duration
    ) async throws(Failure) -> Answer {
        var request = ProviderRequest(
            url: url, headers: [("Accept", "application/json")], maximumAnswer: RevocationStatusList.maximumLength)
        if let tag = held?.entityTag { request.headers.append(("If-None-Match", tag)) }
        let answer: ProviderAnswer
        do { answer = try await http.send(request, within: limit) } catch { throw Failure(description: "\(error)") }
        let lifetime = CacheLifetime(answer)
        switch answer.status {
        case 200:
            return .list(try Self.list(answer.body, answer["ETag"], now - lifetime.age), fresh: lifetime.fresh)
        case 304 where held?.entityTag != nil:
            return .unchanged(confirmedAt: now - lifetime.age, fresh: lifetime.fresh)
        default: throw Failure(description: "the server answered \(answer.status)", retryAfter: answer.retryAfter)
        }
    }

    private static func list(
        _ bytes: [UInt8], _ tag: String?, _ confirmed: UnixTime
    ) throws(Failure) -> KeptList {
        do { return try KeptList(parsing: bytes, entityTag: tag, confirmedAt: confirmed) } catch {
            throw Failure(description: "not a status list: \(error)")
        }
    }
}
