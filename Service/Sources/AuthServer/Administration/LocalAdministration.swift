internal import AuthContract
package import AuthService
internal import StrictJSON

/// The admin API without HTTP and credentials, for a process that has opened the store itself. Rules, bodies and refusals are those
/// of the API. The audit log names the actor given here.
package struct LocalAdministration: Sendable {
    private let api: AdminAPI
    private let caller: AdminCaller

    /// Administration of this service, with these stores.
    package init(service: AuthService, stores: AuthService.Stores, actor: String) {
        api = AdminAPI(service: service, stores: stores)
        caller = AdminCaller(local: actor)
    }

    /// Carries out a call.
    package func answer(_ call: AdminCall) async -> AdminResponse {
        var answer: APIResponse
        do {
            answer = try await api.perform(call.route, try AdminRequest(call, by: caller))
        } catch {
            let frame = ResponseFrame(requestID: "local", now: api.service.clock.now)
            let refusal = Refusal.answering(error)
            answer = frame.answer(refusal)
            // There is no log here, so the refusal shows the reason of an internal failure to the user.
            if refusal.code.httpStatus >= 500, refusal.hint == nil {
                answer = frame.answer(Refusal(refusal.code, refusal.reason, hint: refusal.reason))
            }
        }
        return AdminResponse(answer)
    }
}

extension AdminResponse {
    /// The answer of the API.
    init(_ answer: APIResponse, reason: String? = nil) {
        let body = answer.body.flatMap {
            try? JSONValue(parsing: $0, limits: .init(bytes: max($0.count, 1), depth: 64))
        }
        self.init(
            status: answer.status, body: body ?? .null, entityTag: answer.headers.first { $0.0 == "ETag" }?.1,
            reason: reason)
    }
}
