internal import AuthContract
internal import Bytes
internal import StrictJSON

/// Sign-in and sign-out of people who use the console with a credential of the admin API.
extension AuthService {
    /// Signs a person in: returns the credential with this text, and records the sign-in in the audit log.
    ///
    /// Attempts are limited like those of the admin API. One credential can sign in 10 times a minute, because each sign-in
    /// is an event of the audit log, whose archives are never deleted. Attempts that are refused with `UNAUTHORIZED` or
    /// `FORBIDDEN` are recorded too, at most one a minute.
    ///
    /// - Parameters:
    ///   - text: the text that the person typed.
    ///   - address: the address for which failed attempts are counted.
    /// - Throws: `UNAUTHORIZED`, `RATE_LIMITED`, `FORBIDDEN` for a credential of role `service`, and `SERVICE_UNAVAILABLE` if
    ///   the event cannot be written. In that case the person is not signed in.
    package func signIn(_ text: String, from address: ClientAddress) async throws(Refusal) -> Credential {
        let credential: Credential
        do throws(Refusal) {
            credential = try await credentials.authenticate(text: text, from: address)
            guard credential.role != .service else {
                throw Refusal(
                    .forbidden, "credential \(credential.id) has role service",
                    hint: "A service credential cannot sign in: use one with role viewer, operator or admin")
            }
        } catch {
            await record(error, from: address)
            throw error
        }
        if let wait = signIns.wait(of: credential, at: clock.now) {
            throw Refusal(.rateLimited, "too many sign-ins of one credential", retryAfter: wait)
        }
        try await append(.consoleSignedIn, by: credential, [("address", .string(address.network))])
        return credential
    }

    /// Records that a person signed out.
    ///
    /// - Parameter sessions: the number of sessions that ended.
    package func signedOut(_ credential: Credential, sessions: Int) async throws(Refusal) {
        try await append(.consoleSignedOut, by: credential, [("sessions", .integer(Int64(sessions)))])
    }

    private func append(
        _ code: AuditEvent.Code, by credential: Credential, _ detail: [(String, JSONValue)]
    ) async throws(Refusal) {
        let event = AuditEvent(
            code, at: clock.now, actor: "admin:\(credential.id)",
            detail: JSONObject([("id", .string(credential.id))] + detail))
        let audit = verifier.audit
        try await storeCall { () async throws(StoreError) in try await audit.append(event) }
    }

    private func record(_ refusal: Refusal, from address: ClientAddress) async {
        guard refusal.code == .unauthorized || refusal.code == .forbidden,
            let unrecorded = signIns.recordRefused(at: clock.now)
        else { return }
        let event = AuditEvent(
            .securityEvent, at: clock.now, actor: "service",
            detail: JSONObject([
                ("event", "console_sign_in_refused"), ("address", .string(address.network)),
                ("unrecorded", .integer(Int64(unrecorded))),
            ]))
        // The attempt is refused in any case. If the store fails, the request log still has the attempt.
        try? await verifier.audit.append(event)
    }
}

/// Bounds the events of sign-ins. The audit log and its archives are never shortened, so unbounded events would fill the disk.
final class SignIns: Sendable {
    private static let minute: Int64 = 60
    private let refused = Locked<(recordedAt: UnixTime?, unrecorded: Int)>((nil, 0))
    /// The limit of sign-ins, by the credential's id.
    private let admitted = TokenBuckets<String>(Rate(burst: 10, perMinute: 10), capacity: 1000)

    /// Counts a sign-in: 10 a minute for each credential. Returns nil if the sign-in is admitted; otherwise the seconds until the
    /// credential can sign in again.
    func wait(of credential: Credential, at now: UnixTime) -> Int64? { admitted.take(credential.id, now: now) }

    /// Counts a refused attempt. One attempt a minute is recorded. Returns the number of attempts since the last recorded one;
    /// nil: this attempt is not recorded.
    func recordRefused(at now: UnixTime) -> Int? {
        refused.withLock { state in
            // A clock that was set back starts a new minute.
            if let last = state.recordedAt, (0..<Self.minute).contains(now - last) {
                state.unrecorded += 1
                return nil
            }
            defer { state = (now, 0) }
            return state.unrecorded
        }
    }
}
