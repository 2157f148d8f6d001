internal import StrictJSON

/// A request to Google to decode a token. Your HTTP client sends it, and ``DecodeOutcome/googleAnswer(status:body:)`` reads the response
/// ([decodeIntegrityToken](https://developer.android.com/google/play/integrity/reference/rest/v1/v1/decodeIntegrityToken)).
public struct DecodeRequest: Sendable {
    /// The origin of the API.
    public static let endpoint = "https://playintegrity.googleapis.com"

    /// The largest response that is parsed, in bytes. Let your HTTP client read no more than this.
    public static let maximumAnswer = 64 * 1024

    /// The path of a POST, such as `/v1/com.example.app:decodeIntegrityToken`.
    public let path: String
    /// The body, `application/json`.
    public let body: [UInt8]

    /// A request to decode a token of an app.
    ///
    /// - Parameters:
    ///   - package: the app's package. The result is nil if it is not a package name, because it becomes part of the
    ///     path.
    ///   - token: as the app sent it.
    public init?(package: String, token: String) {
        guard Self.isPackageName(package) else { return nil }
        path = "/v1/\(package):decodeIntegrityToken"
        let content: JSONValue = ["integrityToken": .string(token)]
        body = content.bytes
    }

    private static func isPackageName(_ text: String) -> Bool {
        let letters = text.utf8.allSatisfy { character in
            switch character {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "."):
                true
            default: false
            }
        }
        return letters && 1...255 ~= text.utf8.count && !text.contains("..") && !text.hasPrefix(".")
    }
}

extension DecodeOutcome {
    /// Interprets Google's response to a ``DecodeRequest``: by the HTTP status, and by `error.status` if one HTTP status has
    /// several meanings. Google's texts are not used, because they change.
    ///
    /// - Parameters:
    ///   - status: the HTTP status.
    ///   - body: the answer's body. One of more than ``DecodeRequest/maximumAnswer`` bytes is not read.
    public static func googleAnswer(status: Int, body: some Collection<UInt8>) -> DecodeOutcome {
        let json = try? JSONValue(parsing: body, limits: IntegrityVerdict.limits)
        let errorStatus = json?.object?["error"]?.object?["status"]?.string
        switch status {
        case 200:
            guard let answer = json?.object else {
                return .couldNotCheck(.init(.unexpectedAnswer, "the answer is no JSON object"))
            }
            guard let payload = answer["tokenPayloadExternal"]?.object else {
                return .refused(.init(.answerMalformed, .payload, "the answer has no tokenPayloadExternal"))
            }
            return .decoded(IntegrityVerdict(payload: payload, decodedBy: .google))
        case 400 where errorStatus == "INVALID_ARGUMENT":
            return .refused(.init(.rejectedByGoogle, .decryption, "Google cannot decode the token for this package"))
        case 401:
            return .couldNotCheck(.init(.unauthenticated, "the access token is not accepted; ask for a new one"))
        case 403:
            return .couldNotCheck(
                .init(
                    .projectNotLinked,
                    "the service account may not decode tokens of this app: its Google Cloud project must be the one "
                        + "linked to the app in Play Console (Test and release > App integrity > Play Integrity API), "
                        + "with the Play Integrity API enabled"))
        case 429: return .couldNotCheck(.init(.quotaExceeded, "the daily quota of requests is used up"))
        case 500...599: return .couldNotCheck(.init(.providerUnavailable, "Google answered \(status)"))
        default: return .couldNotCheck(.init(.unexpectedAnswer, "Google answered \(status)"))
        }
    }
}
