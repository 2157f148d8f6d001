import AuthContract
import Testing

@Suite struct ErrorCodes {
    /// The error table of the specification: each code with its HTTP status.
    static let table: [(String, Int)] = [
        ("INVALID_REQUEST", 400), ("NOT_FOUND", 404), ("METHOD_NOT_ALLOWED", 405), ("PAYLOAD_TOO_LARGE", 413),
        ("UNSUPPORTED_MEDIA_TYPE", 415), ("UNKNOWN_APP", 404), ("INVALID_CHALLENGE", 400), ("CHALLENGE_EXPIRED", 400),
        ("INVALID_ATTESTATION", 403), ("PROVIDER_UNAVAILABLE", 503), ("DEV_MODE_NOT_ALLOWED", 403),
        ("NOT_REGISTERED", 401), ("INVALID_SIGNATURE", 401), ("CLOCK_SKEW", 401), ("NONCE_REPLAY", 409),
        ("DEVICE_REVOKED", 403), ("DEVICE_PENDING", 403), ("KEY_EXPIRED", 403), ("ASSERTION_REQUIRED", 403),
        ("INVALID_ASSERTION", 403), ("ROTATION_FAILED", 409), ("UNSUPPORTED_SIG_VERSION", 400), ("UNAUTHORIZED", 401),
        ("CONFLICT", 409), ("PRECONDITION_FAILED", 412),
        ("FORBIDDEN", 403), ("RATE_LIMITED", 429), ("SERVICE_UNAVAILABLE", 503), ("INTERNAL_ERROR", 500),
        ("ATTESTATION_REQUIRED", 403), ("MISDIRECTED_REQUEST", 421),
    ]

    @Test(arguments: table) func `each code has its status`(_ code: String, _ status: Int) {
        #expect(ErrorCode(rawValue: code)?.httpStatus == status)
    }

    @Test func `the codes are those of the table`() {
        #expect(Set(ErrorCode.allCases.map(\.rawValue)) == Set(Self.table.map(\.0)))
    }

    @Test func `each code has a message of one sentence or more`() {
        for code in ErrorCode.allCases {
            #expect(code.message.hasSuffix("."))
            #expect(code.message.utf8.count < 120)
        }
        #expect(Set(ErrorCode.allCases.map(\.message)).count == ErrorCode.allCases.count)
    }

    @Test func `a malformed text is an invalid request`() {
        #expect(ContractError("x").code == .invalidRequest)
    }
}
