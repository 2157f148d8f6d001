import AuthContract
import Bytes
import Foundation
import Testing

@testable import SynheartAuth

extension Heavy {
    /// The cost of calls that wait or hang, and the waits of a first launch.
    @Suite(.serialized, .timeLimit(.minutes(15))) struct ManyCallsTests {
        /// A key store whose signatures hang.
        private struct Hanging: KeyStore {
            let base: any KeyStore
            let gate: Gate
            var protection: KeyProtection { base.protection }

            func create(_ alias: KeyAlias, challenge: [UInt8]?) throws(KeyStoreError) -> DevicePublicKey {
                try base.create(alias, challenge: challenge)
            }
            func load(_ alias: KeyAlias) throws(KeyStoreError) -> DevicePublicKey? { try base.load(alias) }
            func sign(_ message: [UInt8], with alias: KeyAlias) throws(KeyStoreError) -> RequestSignature {
                gate.pass()
                return try base.sign(message, with: alias)
            }
            func delete(_ alias: KeyAlias) throws(KeyStoreError) { try base.delete(alias) }
        }

        @Test func `1,000 calls of a key store that hangs end, cost one thread, and leave Swift's pool free`()
            async throws
        {
            let (phone, _, _) = try await Phone.registered()
            let gate = Gate()
            let sdk = try phone.launch { $0.keyStore = Hanging(base: phone.keys, gate: gate) }
            gate.shut()
            let calls = Task {
                await withTaskGroup(of: Bool.self) { group in
                    for _ in 0..<1000 {
                        group.addTask {
                            (try? await sdk.signRequest(appID: Phone.app, method: "GET", path: "/")) != nil
                        }
                    }
                    return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
                }
            }
            try await eventually { gate.count == 1 }
            // Swift's thread pool runs other work meanwhile.
            #expect(await Task.detached { 1 }.value == 1)
            phone.sleeper.expire()
            #expect(await calls.value == 0)
            #expect(gate.count == 1, "a second thread hangs")
            gate.open()
            try await eventually { (try? await phone.signAndVerify(sdk).status) == 200 }
        }

        @Test
        func
            `1,000 calls that hang take a bounded number of threads, and one that waits is never made once it is cancelled`()
            async throws
        {
            let threads = BoundedThreads(limit: 16)
            let gate = Gate()
            gate.shut()
            let made = Locked(0)
            let calls = (0..<1000).map { _ in
                Task {
                    await threads.run {
                        made.withLock { $0 += 1 }
                        gate.pass()
                        return true
                    }
                }
            }
            try await eventually { threads.busy == 16 && made.withLock { $0 } == 16 }
            #expect(await Task.detached { 1 }.value == 1)
            for call in calls { call.cancel() }
            try await eventually { threads.busy == 16 }
            gate.open()
            var results = 0
            for call in calls where await call.value != nil { results += 1 }
            #expect(results == 16 && made.withLock { $0 } == 16)
            #expect(await threads.run { 7 } == 7, "the threads are free again")
        }

        @Test func `1,000 bodies that hang cost a bounded number of threads, and leave Swift's pool free`() async throws
        {
            let phone = Phone()
            let sdk = try phone.launch {
                $0.origins = SendTests.origins
                $0.scheme = .two
            }
            try await sdk.registerDevice(appID: Phone.app)
            let gate = Gate()
            gate.shut()
            let request = TransportRequest(
                method: "PUT", url: SendTests.api + "/v1/recordings/1", headers: HeaderFields(),
                bodySource: BodySource { GatedBody(gate) })
            let sends = (0..<1000).map { _ in Task { try await sdk.send(request, appID: Phone.app).status } }
            try await eventually { gate.count == 16 }
            #expect(await Task.detached { 1 }.value == 1)
            for send in sends { send.cancel() }
            for send in sends { await #expect(throws: CancellationError.self) { try await send.value } }
            #expect(gate.count == 16 && RequestBody.threads.busy == 16, "more threads hang")
            gate.open()
            try await eventually { RequestBody.threads.busy == 0 }
        }

        @Test
        func `a body that hangs while its digest is made ends in SIGNING_FAILED after 30 seconds without a piece`()
            async throws
        {
            let phone = Phone()
            let gate = Gate()
            gate.shut()
            let digest = Task {
                try await RequestBody.source(BodySource { GatedBody(gate, before: 100_000) }).digest(phone.sleeper)
            }
            try await eventually { gate.count == 1 }
            // The body made progress in the first 30 seconds, so only the second deadline ends the digest.
            phone.sleeper.expire()
            phone.sleeper.expire()
            let error = await expectError(.signingFailed) { try await digest.value }
            #expect(error?.message.contains("does not answer") == true)
            gate.open()
        }

        @Test func `a first launch with nothing stored does not sleep, and neither does the next one`() async throws {
            let phone = Phone()
            for status in [Registration.Status.registered, .alreadyRegistered] {
                let sdk = try phone.launch()
                #expect(try await sdk.isRegistered(appID: Phone.app) == (status == .alreadyRegistered))
                #expect(try await sdk.registerDevice(appID: Phone.app).status == status)
                _ = try await sdk.signRequest(appID: Phone.app, method: "GET", path: "/")
            }
            #expect(phone.sleeper.retries == [] && phone.sleeper.turns == 0)
        }
    }
}
