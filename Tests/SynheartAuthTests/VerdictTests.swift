import AuthContract
import Bytes
import Foundation
import StrictJSON
import Testing

@testable import SynheartAuth

/// When a key or a record is treated as lost (specification, *Key invalidation*).
@Suite struct VerdictTests {
    // MARK: The table

    @Test("every combination of answer, history and canaries has one verdict")
    func total() {
        for answer in VerdictEngine.Answer.allCases {
            for history in VerdictEngine.History.allCases {
                for canaries in VerdictEngine.Canaries.allCases {
                    let fitting = VerdictEngine.rows.filter {
                        $0.answer == answer && ($0.history ?? history) == history
                            && ($0.canaries ?? canaries) == canaries
                    }
                    #expect(!fitting.isEmpty, "\(answer) \(history) \(canaries)")
                    #expect(VerdictEngine.judge(answer, history, canaries) == fitting.first?.verdict)
                }
            }
        }
    }

    @Test("only a final answer, or a second suspicious one with working canaries, is a loss")
    func losses() {
        for answer in VerdictEngine.Answer.allCases {
            for history in VerdictEngine.History.allCases {
                for canaries in VerdictEngine.Canaries.allCases
                where VerdictEngine.judge(answer, history, canaries) == .lost {
                    #expect(answer == .final || (answer == .suspicious && history == .ripe && canaries == .work))
                }
            }
        }
    }

    @Test(
        "a suspicion of this process ripens two seconds after it, one of another process two seconds after this one's start"
    )
    func ripening() {
        let (own, other) = (ProcessID(value: 1), ProcessID(value: 2))
        func history(_ suspicion: Suspicion?, _ running: Duration) -> VerdictEngine.History {
            VerdictEngine.history(suspicion, ProcessTime(process: own, running: running))
        }
        #expect(history(nil, .seconds(100)) == .first)
        let mine = Suspicion(process: own, at: .seconds(5))
        #expect(history(mine, .milliseconds(6999)) == .young && history(mine, .seconds(7)) == .ripe)
        let foreign = Suspicion(process: other, at: .seconds(5000))
        #expect(history(foreign, .milliseconds(1999)) == .young && history(foreign, .seconds(2)) == .ripe)
        // A suspicion that is dated in the future is not old.
        #expect(history(Suspicion(process: own, at: .seconds(50)), .seconds(7)) == .young)
    }

    @Test("each code of a key store is the answer that the table names")
    func answers() {
        let answers: [KeyStoreError.Code: VerdictEngine.Answer] = [
            .invalidated: .final, .notFound: .suspicious, .failed: .suspicious, .unavailable: .temporary,
            .unsupported: .temporary, .misconfigured: .temporary, KeyStoreError.Code(rawValue: "own"): .suspicious,
        ]
        #expect(Set(answers.keys).isSuperset(of: KeyStoreError.Code.allCases))
        for (code, answer) in answers { #expect(VerdictEngine.Answer(code) == answer) }
    }

    // MARK: Whole lives

    @Test("a vanished key: a suspicion in the record, two seconds, working canaries, KEY_INVALIDATED, a new device")
    func vanished() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        phone.keys.vanish()
        await expectSuspicion(.keystoreError, on: phone.clock) { try await sign(sdk) }
        #expect(try phone.record().suspicions.count == 1 && phone.keys.canaryChecks == 0)
        #expect(try await sdk.state(appID: Phone.app) == .registered)
        await expectError(.keyInvalidated) { try await sign(sdk) }
        #expect(phone.keys.canaryChecks > 0)
        #expect(try await sdk.registerDevice(appID: Phone.app).deviceId != id)
        #expect(try phone.record().suspicions.isEmpty && phone.keys.created == 2)
    }

    @Test("while the canaries fail nothing is lost, however often and long the key is not found")
    func canariesFail() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        phone.keys.failCanaries(true)
        for _ in 0..<20 {
            phone.keys.fail(KeyStoreError(.notFound))
            let error = await expectError(.keystoreError) { try await sign(sdk) }
            #expect(error?.isRetryable == true)
            phone.clock.advance(.seconds(60))
        }
        #expect(try await sdk.registerDevice(appID: Phone.app).deviceId == id)
        #expect(try await phone.signAndVerify(sdk).status == 200)
        #expect(try phone.record().suspicions.isEmpty, "a working signature ends the suspicion")
    }

    @Test("a working signature ends a suspicion, so that the next bad answer is the first again")
    func cleared() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        for _ in 0..<5 {
            phone.keys.fail(KeyStoreError(.failed))
            await expectSuspicion(.signingFailed, on: phone.clock) { try await sign(sdk) }
            _ = try await sign(sdk)
            phone.clock.advance(.seconds(100))
        }
        #expect(try phone.record().state == .registered)
    }

    @Test("the signature of a registration ends a suspicion")
    func clearedByRegistration() async throws {
        let phone = Phone()
        let sdk = try phone.launch()
        phone.keys.fail(KeyStoreError(.failed))
        await expectSuspicion(.signingFailed, on: phone.clock) { try await sdk.registerDevice(appID: Phone.app) }
        try await sdk.registerDevice(appID: Phone.app)
        #expect(try phone.record().suspicions.isEmpty && phone.keys.created == 1)
        phone.keys.fail(KeyStoreError(.failed))
        await expectSuspicion(.signingFailed, on: phone.clock) { try await sign(sdk) }
        #expect(try phone.record().state == .registered)
    }

    @Test("the signature of a rotation's new key ends a suspicion")
    func clearedByRotation() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.network.setOffline(true)
        await expectError(.networkError) { try await sdk.rotateKey(appID: Phone.app) }
        guard case .rotation(let pending) = try phone.record().journal else {
            Issue.record("no rotation is left over")
            return
        }
        // The new key loads, and then does not sign.
        phone.keys.fail(.next(try AppID(Phone.app)), KeyStoreError(.failed))
        await expectSuspicion(.signingFailed, on: phone.clock) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(try phone.record().suspicions[pending.alias] != nil)
        await expectError(.networkError) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(try phone.record().suspicions.isEmpty)
    }

    @Test("a suspicion survives the process, and can be confirmed after the next process has run two seconds")
    func twoLaunches() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        phone.keys.vanish()
        phone.clock.advance(.seconds(500))
        _ = try? await sign(sdk)
        let next = try phone.launch()
        #expect(try await next.isRegistered(appID: Phone.app))
        phone.clock.advance(.milliseconds(1999))
        let error = await expectError(.keystoreError) { try await sign(next) }
        #expect(error?.retryAfter == .milliseconds(1))
        phone.clock.advance(.milliseconds(1))
        await expectError(.keyInvalidated) { try await sign(next) }
    }

    @Test("two processes at the same time do not make two answers two seconds apart")
    func twoProcesses() async throws {
        let (phone, app, _) = try await Phone.registered()
        let widget = try phone.launch()
        #expect(try await widget.isRegistered(appID: Phone.app))
        phone.clock.advance(.seconds(500))
        for sdk in [app, widget] {
            phone.keys.fail(KeyStoreError(.notFound))
            let error = await expectError(.keystoreError) { try await sign(sdk) }
            #expect(error?.retryAfter == .seconds(2))
        }
        #expect(try await phone.signAndVerify(app).status == 200)
        phone.keys.vanish()
        _ = try? await sign(app)
        _ = try? await sign(widget)
        phone.clock.advance(.seconds(2))
        await expectError(.keyInvalidated) { try await sign(widget) }
    }

    @Test("a suspicion that cannot be written is no reason to start over")
    func unwritable() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        phone.storage.refuseWrites(true)
        phone.keys.vanish()
        for _ in 0..<3 { await expectSuspicion(.keystoreError, on: phone.clock) { try await sign(sdk) } }
        phone.storage.refuseWrites(false)
        await expectSuspicion(.keystoreError, on: phone.clock) { try await sign(sdk) }
        await expectError(.keyInvalidated) { try await sign(sdk) }
    }

    @Test("a damaged record is copied aside and counts as a lost key after two readings two seconds apart")
    func damaged() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        let name = RecordName(try AppID(Phone.app))
        phone.storage.put(Array("{".utf8), name)
        await expectSuspicion(.storageError, on: phone.clock) { try await sdk.registerDevice(appID: Phone.app) }
        #expect(phone.storage.read(name) == .found(Array("{".utf8)))
        await expectError(.keyInvalidated) { try await sign(sdk) }
        #expect(try await sdk.registerDevice(appID: Phone.app).deviceId != id)
        #expect(try await phone.signAndVerify(sdk).status == 200)
        #expect(phone.storage.everything.contains(Array("{".utf8)), "the copy")
    }

    @Test("a record that is damaged once and read again later is what it was")
    func damagedOnce() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        let name = RecordName(try AppID(Phone.app))
        guard case .found(let bytes) = phone.storage.read(name) else { throw StorageError("no record") }
        for _ in 0..<3 {
            phone.storage.put(Array("{".utf8), name)
            await expectSuspicion(.storageError, on: phone.clock) { try await sdk.getDeviceId(appID: Phone.app) ?? "" }
            phone.storage.put(bytes, name)
            #expect(try await sdk.getDeviceId(appID: Phone.app) == id)
        }
    }

    @Test("a newer record stays where it is, however often it is read")
    func newer() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        let name = RecordName(try AppID(Phone.app))
        let newer = Array(#"{"version":2,"app_id":"com.example.app"}"#.utf8)
        phone.storage.put(newer, name)
        for _ in 0..<3 {
            let error = await expectError(.storageError) { try await sdk.registerDevice(appID: Phone.app) }
            #expect(error?.recovery == SynheartAuthError.Recovery.none)
            phone.clock.advance(.seconds(10))
        }
        #expect(phone.storage.read(name) == .found(newer))
    }

    @Test("a suspicion is persisted as it was meant, and a malformed one is refused")
    func persisted() throws {
        let appID = try AppID(Phone.app)
        var record = IdentityRecord(appID: appID)
        record.suspicions[.next(appID)] = Suspicion(process: ProcessID(value: .max), at: .milliseconds(1234))
        record.attestationKey = IdentityRecord.AttestationKey(
            id: "id", isUsed: true, suspicion: Suspicion(process: ProcessID(value: 1), at: .zero))
        record.attestationOwner = "com.example.app"
        #expect(try IdentityRecord(record.bytes, appID: appID) == record)
        let text = String(decoding: record.bytes, as: UTF8.self)
        let bad = text.replacingOccurrences(of: "ffffffffffffffff", with: "fffffffffffffffff")
        #expect(bad != text)
        #expect(throws: (any Error).self) { try IdentityRecord(Array(bad.utf8), appID: appID) }
    }

    @Test("files have a canary: in a folder where nothing can be written, no key and no record is lost")
    func files() throws {
        let folder = NSTemporaryDirectory() + "synheart-auth-tests/\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let (keys, records) = (SoftwareKeyStore(directory: folder), FileStorage(directory: folder))
        let appID = try AppID(Phone.app)
        try keys.checkCanaries(of: .primary(appID))
        try records.checkCanary(of: RecordName(appID))
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty, "the canary is left")
        // A folder that others can access is refused.
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder)
        let error = #expect(throws: KeyStoreError.self) { try keys.checkCanaries(of: .primary(appID)) }
        #expect(error?.code == .unavailable)
        #expect(throws: StorageError.self) { try records.checkCanary(of: RecordName(appID)) }
    }

    // MARK: Any sequence of answers

    /// A key store whose answers follow a seeded script.
    private final class Liar: KeyStore {
        let base: MemoryKeyStore
        let clock: TestClock
        let random: SeededRandom
        private let state = Locked(State())
        var protection: KeyProtection { .hostKeystore }

        struct State: Sendable {
            var isLying = false
            var canariesWork = true
            /// The times of the suspicious answers since the last working signature.
            var suspicions: [Duration] = []
            var canariesWorked = false
            /// Whether the SDK dropped the old key and made a new one.
            var isGivenUp = false
        }

        init(_ phone: Phone, _ random: SeededRandom) { (base, clock, self.random) = (phone.keys, phone.clock, random) }

        func lie(_ isLying: Bool, canariesWork: Bool) {
            state.withLock { ($0.isLying, $0.canariesWork) = (isLying, canariesWork) }
        }
        var evidence: State { state.withLock { $0 } }

        private func answer() throws(KeyStoreError) {
            guard state.withLock({ $0.isLying }) else { return }
            let codes: [KeyStoreError.Code] = [.notFound, .failed, .unavailable, KeyStoreError.Code(rawValue: "odd")]
            guard random.below(4) > 0 else { return }
            let code = codes[random.below(codes.count)]
            if VerdictEngine.Answer(code) == .suspicious { note() }
            throw KeyStoreError(code)
        }
        private func note() { state.withLock { $0.suspicions.append(clock.continuous) } }

        func create(_ alias: KeyAlias, challenge: [UInt8]?) throws(KeyStoreError) -> DevicePublicKey {
            state.withLock { $0.isGivenUp = true }
            return try base.create(alias, challenge: challenge)
        }
        func load(_ alias: KeyAlias) throws(KeyStoreError) -> DevicePublicKey? {
            try answer()
            let key = try base.load(alias)
            if key == nil { note() }
            return key
        }
        func sign(_ message: [UInt8], with alias: KeyAlias) throws(KeyStoreError) -> RequestSignature {
            try answer()
            do throws(KeyStoreError) {
                let signature = try base.sign(message, with: alias)
                state.withLock { if !$0.isGivenUp { $0.suspicions = [] } }
                return signature
            } catch {
                note()
                throw error
            }
        }
        func delete(_ alias: KeyAlias) throws(KeyStoreError) { try base.delete(alias) }
        func checkCanaries(of alias: KeyAlias) throws(KeyStoreError) {
            let works = state.withLock { state in
                state.canariesWorked = state.canariesWork
                return state.canariesWork
            }
            if !works { throw KeyStoreError(.unavailable) }
        }
    }

    @Test(
        "whatever wrong answers come, no identity is given up but after two suspicions two seconds apart with working canaries"
    )
    func property() async throws {
        var lost = 0
        for seed in UInt64(0)..<60 {
            let (phone, _, id) = try await Phone.registered()
            let random = SeededRandom(seed)
            let keys = Liar(phone, random)
            var sdk = try phone.launch { $0.keyStore = keys }
            for _ in 0..<40 {
                keys.lie(random.below(3) > 0, canariesWork: random.below(4) == 0)
                if random.below(5) == 0 { sdk = try phone.launch { $0.keyStore = keys } }
                switch random.below(4) {
                case 0: _ = try? await sdk.isRegistered(appID: Phone.app)
                case 1: _ = try? await sdk.registerDevice(appID: Phone.app)
                default: _ = try? await sign(sdk)
                }
                let isGivenUp = try phone.record().deviceID?.text != id || phone.record().identity != .active
                if isGivenUp {
                    let evidence = keys.evidence
                    let span = (evidence.suspicions.last ?? .zero) - (evidence.suspicions.first ?? .zero)
                    #expect(evidence.suspicions.count >= 2 && span >= .seconds(2), "seed \(seed)")
                    #expect(evidence.canariesWorked, "seed \(seed)")
                    lost += 1
                    break
                }
                phone.clock.advance(.milliseconds(random.below(3000)))
            }
        }
        #expect(lost > 0, "the script never led to a loss: it proves nothing")
    }

    @Test("a key that is really gone is replaced within two launches, whatever the platform said before")
    func alwaysBack() async throws {
        for seed in UInt64(100)..<130 {
            let (phone, _, _) = try await Phone.registered()
            let random = SeededRandom(seed)
            let keys = Liar(phone, random)
            var sdk = try phone.launch { $0.keyStore = keys }
            for _ in 0..<random.below(10) {
                keys.lie(true, canariesWork: random.below(2) == 0)
                _ = try? await sign(sdk)
                phone.clock.advance(.milliseconds(random.below(3000)))
            }
            keys.lie(false, canariesWork: true)
            phone.keys.vanish()
            for launch in 0..<2 {
                sdk = try phone.launch { $0.keyStore = keys }
                // The app follows the recovery of each error.
                for _ in 0..<2 {
                    do { _ = try await sdk.registerDevice(appID: Phone.app) } catch let error as SynheartAuthError {
                        #expect(error.isRetryable, "seed \(seed), launch \(launch): \(error)")
                        phone.clock.advance(error.retryAfter ?? .seconds(2))
                    }
                }
            }
            #expect(try await phone.signAndVerify(sdk).status == 200, "seed \(seed)")
        }
    }

    @discardableResult
    private func sign(_ sdk: SynheartAuth) async throws -> Int {
        try await sdk.signRequest(appID: Phone.app, method: "GET", path: "/").fields.count
    }
}
