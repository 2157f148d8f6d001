public import AuthContract

/// What a list of evidence shows: nothing that was sent by a device.
public struct EvidenceSummary: Sendable, Hashable {
    /// Names it, a UUID.
    public let id: String
    public let appID: AppID
    /// The device, where it was known already.
    public let deviceID: DeviceID?
    public let recordedAt: UnixTime
    /// When it is erased.
    public let expiresAt: UnixTime
    /// The name of the format, such as `app-attest-attestation`.
    public let format: String
    /// The stable reason of the refusal, and the check that refused.
    public let code: String
    public let step: String

    /// A summary of its parts.
    public init(
        id: String, appID: AppID, deviceID: DeviceID?, recordedAt: UnixTime, expiresAt: UnixTime, format: String,
        code: String, step: String
    ) {
        self.id = id
        self.appID = appID
        self.deviceID = deviceID
        self.recordedAt = recordedAt
        self.expiresAt = expiresAt
        self.format = format
        self.code = code
        self.step = step
    }
}

/// A refusal as it is kept: its document sealed with the service key.
public struct StoredEvidence: Sendable, Hashable {
    public let summary: EvidenceSummary
    /// The document, sealed.
    public let sealed: [UInt8]

    /// Evidence of its parts.
    public init(summary: EvidenceSummary, sealed: [UInt8]) {
        self.summary = summary
        self.sealed = sealed
    }
}

/// How much evidence an app may have.
public struct EvidenceBounds: Sendable, Hashable {
    public let count: Int
    /// Sealed bytes, all together.
    public let bytes: Int

    /// What the service keeps of an app.
    public static let standard = EvidenceBounds(count: 1000, bytes: 32 << 20)

    /// Bounds.
    public init(count: Int, bytes: Int) {
        self.count = count
        self.bytes = bytes
    }
}

/// Keeps evidence of refusals.
///
/// What it guarantees: an app never has more than the bounds allow, whatever is kept at once; what was erased is gone from
/// every answer. Evidence may be lost: nothing depends on it.
public protocol EvidenceStore: Sendable {
    /// Keeps evidence, and erases the app's oldest until it is within the bounds. What is larger than they are is not kept.
    func keep(_ evidence: StoredEvidence, within bounds: EvidenceBounds) async throws(StoreError)

    /// Summaries, newest first, at most `limit`: of one app, where one is named, and older than the one with the id
    /// `before`, where one is; none where that is not there.
    func evidence(of app: AppID?, before id: String?, limit: Int) async throws(StoreError) -> [EvidenceSummary]

    /// One, with its document.
    func evidence(_ id: String, of app: AppID) async throws(StoreError) -> StoredEvidence?

    /// Erases one, or all of the app's where `id` is nil; returns how many.
    func eraseEvidence(_ id: String?, of app: AppID, recording event: AuditEvent) async throws(StoreError) -> Int

    /// Erases what has expired, at most `limit` at once; returns how many.
    func eraseEvidence(expiredAt now: UnixTime, limit: Int) async throws(StoreError) -> Int
}
