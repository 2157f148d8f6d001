import AuthContract
import AuthServer
import StrictJSON

/// The admin API, by one of two ways: straight to the store, or over HTTP to a running service. Commands know only this.
protocol Administration: Sendable {
    /// Carries out a call; throws where no answer came.
    func answer(_ call: AdminCall) async throws -> AdminAnswer

    /// Lets go of what it holds open.
    func close() async
}

extension Administration {
    /// Carries out a call and gives the body of its success.
    ///
    /// - Throws: `CommandFailure`: refused where the answer says that it does not hold, impossible where nobody could tell.
    func ask(
        _ route: AdminRoute, _ parameters: [String: String] = [:], query: [(String, String?)] = [],
        body: JSONObject? = nil
    ) async throws -> JSONObject {
        let answer = try await answer(AdminCall(route, parameters, query: query, body: body))
        guard answer.status >= 400 else { return answer.body.object ?? JSONObject() }
        guard let fields = try? JSONFields(answer.body), let error = try? ErrorBody(fields) else {
            throw CommandFailure(.impossible, "the answer, with status \(answer.status), is not the admin API's")
        }
        // A path without parameters is there on every operations listener.
        if error.code == ErrorCode.notFound.rawValue, !route.template.contains("{") {
            throw CommandFailure(.impossible, "there is no admin API there: --url names the operations listener")
        }
        throw CommandFailure(Self.kind(answer.status), Self.sentence(error))
    }

    /// The elements of a list in an answer.
    func list(_ route: AdminRoute, _ member: String, query: [(String, String?)] = []) async throws -> [JSONObject] {
        (try await ask(route, query: query)[member]?.array ?? []).compactMap(\.object)
    }

    /// Elements of a list that comes in pages: at most `limit`, however many pages they are on.
    ///
    /// - Parameters:
    ///   - cursor: the parameter that says where a page begins, and the member of an answer that says where the next one does.
    ///   - start: where the first one begins; nil: at the newest.
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

    /// What is particular about an error, without the sentence that all of its code have.
    private static func sentence(_ error: ErrorBody) -> String {
        guard let general = ErrorCode(rawValue: error.code)?.message, error.message.hasPrefix(general) else {
            return error.message
        }
        let particular = error.message.dropFirst(general.count).drop { $0 == " " }
        return particular.isEmpty ? general : String(particular)
    }
}
