internal import AuthContract
internal import Logging
internal import StrictJSON
internal import Verification

/// Keeps refused proofs if the app's policy asks for it: sealed, bounded, for a limited time.
///
/// A failure to keep a proof changes no verdict. The caller waits for the store's deadline at most.
struct RefusalRecorder: Sendable {
    /// The operation in which a refusal happened.
    enum Occasion: String, Sendable {
        case registration, rotation, request, refresh
    }

    let store: (any RecordingStore)?
    let writer: (any RecordingWriter)?
    let key: ServiceKey
    let clock: any ServiceClock
    let random: any RandomSource
    /// The limit of recordings for each app. `codeRates` limits those with the same reason. Without these limits, a
    /// flood of bad proofs could keep the disk busy, and evict other recordings.
    private let rates = TokenBuckets<AppID>(Rate(burst: 60, perMinute: 60), capacity: 10_000)
    private let codeRates = TokenBuckets<Reason>(Rate(burst: 30, perMinute: 6), capacity: 10_000)
    private let logger = Logger(label: "synheart.evidence")

    private struct Reason: Hashable, Sendable {
        let app: AppID
        let code: String
    }

    /// Nothing is recorded without a store and a writer.
    init(
        store: (any RecordingStore)?, writer: (any RecordingWriter)?, key: ServiceKey, clock: any ServiceClock,
        random: any RandomSource
    ) {
        self.store = store
        self.writer = writer
        self.key = key
        self.clock = clock
        self.random = random
    }

    /// Keeps a refused proof. Does nothing if `proof` is nil, because then the refusal was not about a proof.
    func record(
        _ proof: (@Sendable () -> RefusedProof)?, _ occasion: Occasion, of app: ProvisionedApp, device: DeviceID? = nil
    ) async {
        guard let proof, let store, let writer, app.record.evidence.record else { return }
        let (refused, now) = (proof(), clock.now)
        guard codeRates.take(Reason(app: app.record.appID, code: refused.code), now: now) == nil,
            rates.take(app.record.appID, now: now) == nil
        else { return }
        do {
            try await store.keep(try sealed(refused, by: writer, occasion, app.record, device), within: .standard)
        } catch {
            logger.warning("a refusal was not recorded", metadata: ["reason": "\(error)"])
        }
    }

    private func sealed(
        _ proof: RefusedProof, by writer: any RecordingWriter, _ occasion: Occasion, _ app: AppRecord,
        _ device: DeviceID?
    ) throws -> RecordedRefusal {
        let (id, now) = (RandomUUID(from: random).text, clock.now)
        let subject = JSONObject([
            ("id", .string(id)), ("app_id", .string(app.appID.text)),
            ("device_id", device.map { .string($0.text) } ?? .null), ("occasion", .string(occasion.rawValue)),
            ("recorded_at", .string(now.iso8601)),
        ])
        let (format, document) = try writer.document(of: proof, subject: subject)
        let summary = RecordingSummary(
            id: id, appID: app.appID, deviceID: device, recordedAt: now,
            expiresAt: now + app.evidence.keepDays * 86_400, format: format, code: proof.code, step: proof.step)
        return RecordedRefusal(
            summary: summary,
            sealed: try key.seal(JSONValue.object(document).bytes, context: Self.context(id, of: app.appID)))
    }

    /// Erases expired recordings.
    func sweep() async {
        guard let store else { return }
        while !Task.isCancelled,
            let erased = try? await store.eraseRecordings(expiredAt: clock.now, limit: Self.step), erased == Self.step
        {}
    }

    private static let step = 500

    static func context(_ id: String, of app: AppID) -> String { "synheart-auth/evidence/\(app.text)/\(id)" }
}
