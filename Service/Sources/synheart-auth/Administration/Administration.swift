import AuthContract
import AuthServer
import StrictJSON

/// The admin API, on the store or over HTTP to a running service. Commands do not see the difference.
protocol Administration: Sendable {
    /// Makes a call. Throws if there is no response.
    func answer(_ call: AdminCall) async throws -> AdminResponse

    /// Closes the store or the connection.
    func close() async
}

extension Administration {
    /// Makes a call and returns the body of the answer if the call succeeds.
    ///
    /// - Throws: `CommandFailure`: `impossible` for the statuses 401, 403, 429 and 5xx, and if the admin API does not respond;
    ///   `refused` for any other refusal.
    func ask(
        _ route: AdminRoute, _ parameters: [String: String] = [:], query: [(String, String?)] = [],
        body: JSONObject? = nil
    ) async throws -> JSONObject {
        try await ask(AdminCall(route, parameters, query: query, body: body))
    }

    /// Makes this call and returns the body of the answer if the call succeeds.
    func ask(_ call: AdminCall) async throws -> JSONObject {
        try Self.success(try await answer(call), of: call.route)
    }

    /// Makes a call that returns a new secret. If the call fails, the error says that the service may have carried it out
    /// nevertheless.
    ///
    /// - Parameters:
    ///   - thing: what the call makes, such as "webhook".
    ///   - command: the command that lists these things.
    func askForSecret(
        _ route: AdminRoute, body: JSONObject, ofA thing: String, listedBy command: String
    ) async throws -> JSONObject {
        do {
            return try await ask(route, body: body)
        } catch let failure as CommandFailure where failure.kind == .impossible {
            throw CommandFailure(
                .impossible,
                "\(failure). The service may have made the \(thing) all the same: if `\(command)` shows it, remove it, because its secret "
                    + "was not shown")
        }
    }

    /// Reads the record to change, and its version for `AdminCall.ifMatch`. The version is nil if the response has no
    /// `ETag`.
    func read(
        _ route: AdminRoute, _ parameters: [String: String]
    ) async throws -> (object: JSONObject, version: String?) {
        let answer = try await answer(AdminCall(route, parameters))
        return (try Self.success(answer, of: route), answer.entityTag)
    }

    /// The body of an answer, if the call succeeded.
    ///
    /// - Throws: as `ask`.
    static func success(_ answer: AdminResponse, of route: AdminRoute) throws(CommandFailure) -> JSONObject {
        guard answer.status >= 400 else { return answer.body.object ?? JSONObject() }
        guard let fields = try? JSONFields(answer.body), let error = try? ErrorBody(fields) else {
            throw CommandFailure(.impossible, "the answer, with status \(answer.status), is not the admin API's")
        }
        // Every operations listener serves the paths without parameters, so a 404 for such a path comes from another server.
        if error.code == ErrorCode.notFound.rawValue, !route.template.contains("{") {
            throw CommandFailure(.impossible, "there is no admin API there: --url names the operations listener")
        }
        throw CommandFailure(kind(answer.status), sentence(error))
    }

    /// The elements of a list in a response.
    func list(_ route: AdminRoute, _ member: String, query: [(String, String?)] = []) async throws -> [JSONObject] {
        (try await ask(route, query: query)[member]?.array ?? []).compactMap(\.object)
    }

    /// At most `limit` elements of a paged list, over any number of pages.
    ///
    /// - Parameters:
    ///   - cursor: the query parameter for the start of a page, and the response member with the start of the next page.
    ///   - start: the start of the first page; nil: the newest element.
    func list(
        _ route: AdminRoute, _ member: String, limit: Int, cursor: (parameter: String, next: String),
        from start: String? = nil, query: [(String, String?)]
    ) async throws -> [JSONObject] {
        var (found, next) = ([JSONObject](), start)
        repeat {
            let size = String(min(limit - found.count, 1000))
            let answer = try await ask(route, query: query + [(cursor.parameter, next), ("limit", size)])
            found += (answer[member]?.array ?? []).compactMap(\.object)
            next = answer[cursor.next].flatMap { $0.string ?? $0.integer.map { String($0) } }
        } while next != nil && found.count < limit
        return found
    }

    private static func kind(_ status: Int) -> CommandFailure.Kind {
        switch status {
        case 401, 403, 429, 500...: .impossible
        default: .refused
        }
    }

    /// The specific part of an error's message. If there is none, the sentence that all errors of this code share.
    private static func sentence(_ error: ErrorBody) -> String {
        guard let general = ErrorCode(rawValue: error.code)?.message, error.message.hasPrefix(general) else {
            return error.message
        }
        let particular = error.message.dropFirst(general.count).drop { $0 == " " }
        return particular.isEmpty ? general : String(particular)
    }
}
