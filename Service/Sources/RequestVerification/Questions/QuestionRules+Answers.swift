internal import AuthContract
internal import StrictJSON

extension QuestionRules {
    /// The result for a request, from an answer of the service.
    ///
    /// - Parameter id: the id of the question.
    package func answer(
        _ response: ServiceResponse, to request: ReceivedRequest, id: String
    ) -> VerificationAnswer {
        let fields = response.body.flatMap { try? JSONFields(JSONValue(parsing: $0)) }
        switch response.status {
        case 200:
            if let fields, let passed = passed(fields, request) { return passed }
        case 429, 500...:
            return unavailable(
                id, "the service answered \(response.status)", retryAfter: response.retryAfter,
                isOutage: response.status != 429)
        case 400..<500:
            guard let fields, let code = code(fields, "error") else { break }
            if code == ErrorCode.unauthorized.rawValue || code == ErrorCode.forbidden.rawValue {
                let reason =
                    "the service refuses this backend's credential (\(code)): see `synheart-auth credentials list`, and create "
                    + "one of role service for the app"
                // FORBIDDEN is not an outage: this request is of another app, and requests of the credential's app still pass.
                return unavailable(
                    id, reason, retryAfter: 30, isOutage: code == ErrorCode.unauthorized.rawValue)
            }
            if (try? fields.bool("verified")) == false {
                return .refused(relayed(response, fields, code: code, id))
            }
        default: break
        }
        // A 400 or 413 is the fault of this one request. Any other status would be the answer to all requests: an outage.
        let named = fields.flatMap { code($0, "error") } ?? "none"
        return unavailable(
            id, "the service gave no verdict: status \(response.status), code \(named), verification_id \(id)",
            retryAfter: response.retryAfter, isOutage: ![400, 413].contains(response.status))
    }

    /// The verdict in an answer with status 200; nil if the answer has no valid verdict.
    private func passed(_ fields: JSONFields, _ request: ReceivedRequest) -> VerificationAnswer? {
        if (try? fields.bool("verified")) == false {
            // The code may be unknown here, because the service may be newer.
            return code(fields, "observed").map { .observed(code: $0) }
        }
        guard case .verified(let identity)? = try? VerifyResponse(fields), identity.keyAgeSeconds >= 0,
            // The identity must be that of the request. Otherwise the answer is about another request.
            (try? request.headers.one(HeaderName.appID)) == identity.appID.text,
            (try? request.headers.one(HeaderName.deviceID)) == identity.deviceID.text,
            identityAudience == nil || identity.identityToken.map(Self.isJWT) ?? false
        else { return nil }
        return .accepted(identity)
    }

    /// Whether a text has the form of a JWT, so that it is a valid header value.
    private static func isJWT(_ text: String) -> Bool {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 3 && text.utf8.count <= TokenRules.maximumLength
            && parts.allSatisfy { !$0.isEmpty && Base64.url.isText($0) }
    }

    /// The value of a member if it has the form of a code; nil for any other value.
    private func code(_ fields: JSONFields, _ name: String) -> String? {
        guard let text = try? fields.string(name), 1...64 ~= text.utf8.count, text.utf8.allSatisfy(Self.isOfCode) else {
            return nil
        }
        return text
    }

    private static func isOfCode(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"): true
        default: false
        }
    }

    /// The refusal for the client. It has only those parts of the service's answer that the client needs to recover.
    private func relayed(
        _ response: ServiceResponse, _ fields: JSONFields, code: String, _ id: String
    ) -> RefusalAnswer {
        var further: [(String, String)] = []
        if let time = response.headers.values(HeaderName.serverTime).first, (try? UnixTime(header: time)) != nil {
            further.append((HeaderName.serverTime, time))
        }
        if let demand = response.headers.values(HeaderName.assertion).first, 1...1000 ~= demand.utf8.count,
            demand.utf8.allSatisfy({ 0x20...0x7E ~= $0 })
        {
            further.append((HeaderName.assertion, demand))
        }
        if let seconds = response.retryAfter { further.append(("Retry-After", String(seconds))) }
        let time = (try? fields.integer("server_timestamp")).map { UnixTime($0) }
        let error = ErrorBody(
            code: code, message: text(fields, "message", 500) ?? "The request was refused.",
            requestID: text(fields, "request_id", 128) ?? id, serverTimestamp: time ?? now())
        var refusal = RefusalAnswer(status: response.status, error, further)
        refusal.isVerdict = true
        return refusal
    }

    /// The text of a member, cut to `length` code points; nil if it is absent or empty.
    private func text(_ fields: JSONFields, _ name: String, _ length: Int) -> String? {
        guard let text = try? fields.string(name), !text.isEmpty else { return nil }
        return String(text.unicodeScalars.prefix(length))
    }
}
