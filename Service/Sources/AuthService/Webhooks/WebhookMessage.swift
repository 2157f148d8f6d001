internal import AuthContract
internal import Crypto
internal import StrictJSON

/// One delivery by Standard Webhooks 1.0.0 (https://www.standardwebhooks.com): the same id and body for each attempt, and a
/// signature that covers id, time and body.
struct WebhookMessage: Sendable, Hashable {
    /// The `webhook-id`. Receivers ignore a message whose id they have seen before. After a restore, numbers of events repeat,
    /// so the id has the event's hash too.
    let id: String
    /// The body, as JSON: `type`, `timestamp`, and the event as `data`.
    let body: [UInt8]

    /// The largest detail in bytes. A larger one is left out.
    private static let maximumDetail = 64 * 1024

    init(id: String, body: [UInt8]) { (self.id, self.body) = (id, body) }

    init(_ recorded: RecordedAuditEvent, of webhook: Webhook) {
        id = "evt_\(webhook.id)_\(recorded.sequence)_\(Hexadecimal.encode(Array(recorded.hash.prefix(8))))"
        let event = recorded.event
        let isWhole = event.detailText.utf8.count <= Self.maximumDetail
        let data = JSONObject([
            ("sequence", .integer(recorded.sequence)), ("actor", .string(event.actor)),
            ("app_id", event.appID.map { .string($0.text) } ?? .null),
            ("device_id", event.deviceID.map { .string($0.text) } ?? .null),
            ("detail", isWhole ? .object(event.detail) : .null), ("hash", .string(Hexadecimal.encode(recorded.hash))),
        ])
        let message = JSONObject([
            ("type", .string(event.codeText)), ("timestamp", .string(event.at.iso8601)), ("data", .object(data)),
        ])
        body = JSONValue.object(message).bytes
    }

    /// The header fields of an attempt.
    ///
    /// - Parameters:
    ///   - secret: the bytes of the webhook's secret.
    ///   - now: the time of the attempt.
    func headers(signedWith secret: [UInt8], at now: UnixTime) -> [(name: String, value: String)] {
        let signed = Array("\(id).\(now.seconds).".utf8) + body
        let code = HMAC<SHA256>.authenticationCode(for: signed, using: SymmetricKey(data: secret))
        return [
            ("Content-Type", "application/json"), ("webhook-id", id), ("webhook-timestamp", String(now.seconds)),
            ("webhook-signature", "v1," + Base64.standard.encode(Array(code))),
        ]
    }
}
