internal import AuthContract
internal import Crypto

/// The hash chain of the audit log. All stores use it, so that an exported log can be checked without knowing its
/// store.
///
/// The hash of an event is SHA-256 over a label, the previous event's hash (32 zero bytes before the first event),
/// the sequence number and the event's members. Each text is preceded by its length, so two different events never
/// give the same bytes.
public enum AuditChain {
    /// The hash before the first event.
    public static let origin = [UInt8](repeating: 0, count: 32)

    /// An event's members as a log stores them. The detail is the stored text, so that even a changed space is detected.
    public struct Entry: Sendable, Hashable {
        /// The number of the event: 1, 2, 3… without a gap.
        public let sequence: Int64
        /// The code's text, such as `device.revoked`.
        public let code: String
        /// The time of the event, in unix seconds.
        public let at: Int64
        /// The actor, as in `AuditEvent.actor`.
        public let actor: String
        /// The app; nil if the event concerns none.
        public let appID: String?
        /// The device; nil if the event concerns none.
        public let deviceID: String?
        /// The detail as JSON text.
        public let detail: String

        /// An entry with these values.
        public init(
            sequence: Int64, code: String, at: Int64, actor: String, appID: String?, deviceID: String?, detail: String
        ) {
            self.sequence = sequence
            self.code = code
            self.at = at
            self.actor = actor
            self.appID = appID
            self.deviceID = deviceID
            self.detail = detail
        }

        /// The entry of an event.
        public init(_ event: AuditEvent, sequence: Int64) {
            self.init(
                sequence: sequence, code: event.codeText, at: event.at.seconds, actor: event.actor,
                appID: event.appID?.text, deviceID: event.deviceID?.text, detail: event.detailText)
        }
    }

    /// The hash of `entry`. `previous` is the hash of the event before it.
    public static func hash(_ entry: Entry, after previous: [UInt8]) -> [UInt8] {
        var hash = SHA256()
        hash.update(data: Array("synheart-auth/audit/v1\n".utf8))
        hash.update(data: previous)
        update(&hash, entry.sequence)
        update(&hash, entry.at)
        for text in [entry.code, entry.actor, entry.appID, entry.deviceID, entry.detail] {
            // A missing member must differ from an empty one.
            update(&hash, text.map { Int64($0.utf8.count) } ?? -1)
            hash.update(data: Array((text ?? "").utf8))
        }
        return Array(hash.finalize())
    }

    private static func update(_ hash: inout SHA256, _ number: Int64) {
        hash.update(data: withUnsafeBytes(of: number.bigEndian) { Array($0) })
    }
}
