import AuthContract
import Testing

@testable import SynheartAuth

/// Random walks over the reducer: after any events in any order, the record is one that the rules allow.
@Suite struct ReducerPropertyTests {
    private static func appID() throws -> AppID { try AppID("com.example.app") }

    private static func event(_ random: SeededRandom, _ appID: AppID) -> IdentityEvent {
        let alias: KeyAlias = random.below(2) == 0 ? .primary(appID) : .next(appID)
        let reference = IdentityRecord.KeyReference(alias: alias, thumbprint: "t\(random.below(3))")
        let time = UnixTime(Int64(random.below(1000)))
        let device = DeviceID(from: random)
        switch random.below(31) {
        case 0: return .challengeReceived(authOrigin: "https://auth.test")
        case 1: return .keyReady(reference, isReused: random.below(2) == 0)
        case 2: return .attestationKeyMade(id: "h\(random.below(3))", owner: random.below(2) == 0 ? nil : "bundle")
        case 3: return .attestationKeyForgotten
        case 4: return .registrationSending(.ios)
        case 5, 6: return .registered(device, at: time)
        case 7: return .pending(device, at: time)
        case 8: return .registrationFailed(forgetsKey: random.below(2) == 0)
        case 9, 10: return .rotationStarted(alias, .scheduled)
        case 11:
            return .rotationSending(
                thumbprint: "t\(random.below(3))", timestamp: time, usesHandle: random.below(2) == 0)
        case 12: return .rotationConfirmed(at: time)
        case 13: return .rotationSuspended(isRefused: random.below(2) == 0)
        case 14: return .rotationAbandoned
        case 15: return .keyDisposed
        case 16: return .keyLost(reference)
        case 17: return .wiped
        case 18: return .resetStarted(.userRequested)
        case 19: return .rotationHandleMade(id: "n\(random.below(3))")
        case 20: return .rotationHandleForgotten
        case 21: return time.seconds.isMultiple(of: 2) ? .rotationCopiesRefused : .rotationCopiesSent(before: time)
        case 22: return .rotationKeyForgotten
        case 23: return .rotationDemanded(RotationDemand(by: time, reason: .compromise), of: reference)
        case 24: return .schemeUsed(random.below(2) == 0 ? .one : .two)
        case 25:
            return .keySuspected(reference, Suspicion(process: ProcessID(value: 7), at: .milliseconds(time.seconds)))
        case 26: return .keyTrusted(alias)
        case 27:
            return .assertionKeySuspected(
                id: "h\(random.below(3))", Suspicion(process: ProcessID(value: 7), at: .milliseconds(time.seconds)))
        case 28: return .assertionKeyTrusted(id: "h\(random.below(3))")
        case 29: return .assertionKeyLost(id: "h\(random.below(3))")
        default: return .clockLearned(ClockOffset(milliseconds: Int64(random.below(100_000))) ?? .none)
        }
    }

    @Test("random walks keep every invariant and reach every state")
    func walks() throws {
        // The walk with seed 40 reaches every state by itself, so the expectation holds for every sample of the other seeds.
        let seeds = sample(0..<50 as Range<UInt64>) + [40]
        let reached = try seeds.reduce(into: Set<IdentityState>()) { try $0.formUnion(walk(seed: $1)) }
        #expect(reached == Set(IdentityState.allCases))
    }

    private func walk(seed: UInt64) throws -> Set<IdentityState> {
        let appID = try Self.appID()
        let random = SeededRandom(seed)
        var record = IdentityRecord(appID: appID)
        var reached: Set<IdentityState> = []
        for _ in 0..<1000 {
            let event = Self.event(random, appID)
            let next: IdentityRecord
            do throws(SynheartAuthError) {
                next = try IdentityReducer.reduce(record, event)
            } catch {
                #expect(error.code == .invalidStateTransition)
                #expect(error.transition?.from == record.state || record.state == .registering)
                continue
            }
            #expect(next.isConsistent, "\(event) led from \(record) to \(next)")
            #expect(isAllowed(record, event, next), "\(event) led from \(record.state) to \(next.state)")
            // The persisted record is parsed to the same record.
            #expect(try IdentityRecord(next.bytes, appID: appID) == next)
            // The current key is neither the key that is to be deleted nor the pending key of a rotation.
            if next.identity == .active, case .disposal(let alias) = next.journal { #expect(alias != next.key?.alias) }
            if case .rotation(let rotation) = next.journal, next.identity == .active {
                #expect(rotation.alias != next.key?.alias)
            }
            reached.insert(next.state)
            record = next
        }
        return reached
    }

    private func isAllowed(_ before: IdentityRecord, _ event: IdentityEvent, _ after: IdentityRecord) -> Bool {
        if before.state == after.state { return true }
        if case .resetStarted = event { return after.state == .unregistered }
        // If the key is lost during a rotation, one write makes two transitions: to registered, and to keyInvalid.
        if case .keyLost = event, before.state == .registering { return after.state == .keyInvalid }
        return StateTable.rows.contains { $0.from == before.state && $0.to == after.state && $0.cause != .reset }
    }
}
