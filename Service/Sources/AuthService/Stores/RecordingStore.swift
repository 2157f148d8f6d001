public import AuthContract

/// The list entry of a recorded refusal. It has no part of the proof that the device sent.
public struct RecordingSummary: Sendable, Hashable {
    /// The id of the recording, a UUID.
    public let id: String
    /// The app that the refused request named.
    public let appID: AppID
    /// The device, if the service knew it already.
    public let deviceID: DeviceID?
    /// When the service refused the proof.
    public let recordedAt: UnixTime
    /// The time at which the recording is erased.
    public let expiresAt: UnixTime
    /// The name of the format, such as `app-attest-attestation`.
    public let format: String
    /// The stable reason of the refusal.
    public let code: String
    /// The name of the check that failed, as in the verification library.
    public let step: String

    /// Memberwise initializer.
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

/// A stored refusal: the list entry, and the document with the refused proof, sealed with the service key.
public struct RecordedRefusal: Sendable, Hashable {
    /// The entry that lists show.
    public let summary: RecordingSummary
    /// The document, sealed.
    public let sealed: [UInt8]

    /// Memberwise initializer.
    public init(summary: RecordingSummary, sealed: [UInt8]) {
        self.summary = summary
        self.sealed = sealed
    }
}

/// The bounds for the recordings of one app.
public struct RecordingBounds: Sendable, Hashable {
    /// The largest number of recordings.
    public let count: Int
    /// The largest total size of the sealed recordings, in bytes.
    public let bytes: Int

    /// The bounds that the service uses for each app.
    public static let standard = RecordingBounds(count: 1000, bytes: 32 << 20)

    /// Memberwise initializer.
    public init(count: Int, bytes: Int) {
        self.count = count
        self.bytes = bytes
    }
}

/// Keeps recordings of refusals.
///
/// Guarantees:
/// - An app never has more recordings than its bounds allow, even if many callers keep some concurrently. One app's bounds never
///   remove another app's recordings.
/// - "Newest" and "oldest" mean the order in which recordings were kept, whatever `recordedAt` is.
/// - Erased recordings are no longer returned.
/// - The store may lose recordings, because nothing depends on them.
public protocol RecordingStore: Sendable {
    /// Keeps a recording, and erases the app's oldest until the app is within its bounds. A recording that alone exceeds the
    /// bounds is not kept, and erases nothing. A recording of an app that does not exist is not kept either.
    func keep(_ recording: RecordedRefusal, within bounds: RecordingBounds) async throws(StoreError)

    /// Summaries, newest first.
    ///
    /// - Parameters:
    ///   - app: only those of this app; nil: of all apps.
    ///   - id: only recordings older than this one; none if it does not exist. Nil: from the newest on.
    ///   - limit: 1 to 1000.
    func recordings(of app: AppID?, before id: String?, limit: Int) async throws(StoreError) -> [RecordingSummary]

    /// One refusal with its document; nil if the app has none with this id.
    func recording(_ id: String, of app: AppID) async throws(StoreError) -> RecordedRefusal?

    /// Erases one refusal, or all of the app's if `id` is nil. Returns the number of erased refusals, and appends the event
    /// unless that is 0.
    func eraseRecordings(_ id: String?, of app: AppID, recording event: AuditEvent) async throws(StoreError) -> Int

    /// Erases recordings with `expiresAt <= now`, at most `limit` (1 to 1000). Returns the number of erased refusals; 0 means
    /// that none is left.
    func eraseRecordings(expiredAt now: UnixTime, limit: Int) async throws(StoreError) -> Int
}
