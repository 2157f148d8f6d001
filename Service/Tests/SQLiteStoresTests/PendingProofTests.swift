import AuthContract
import AuthService
import Testing

@testable import SQLiteStores

struct PendingProofTests {
    private func proof(_ number: UInt8) throws -> PendingProof {
        PendingProof(
            appID: try AppID("com.example.app"), deviceID: try DeviceID("00000000-0000-4000-8000-00000000000\(number)"),
            arrivedAt: UnixTime(1_750_000_000 + Int64(number)), sealedRequest: [number, 0, 0xFF])
    }

    @Test func `a proof is there until it is erased, also after reopening`() async throws {
        let folder = try TemporaryFolder()
        var stores = try SQLiteStores.open(folder)
        for number: UInt8 in [3, 1, 2] { try await stores.pendingProofs.keep(try proof(number)) }
        await stores.close()
        stores = try SQLiteStores.open(folder)
        let kept = try await stores.pendingProofs.pendingProofs(after: nil, limit: 10)
        #expect(kept == [try proof(1), try proof(2), try proof(3)])
        try await stores.pendingProofs.erasePendingProof(of: try proof(2).deviceID)
        try await stores.pendingProofs.erasePendingProof(of: try proof(2).deviceID)
        let first = try await stores.pendingProofs.pendingProofs(after: nil, limit: 1)
        #expect(first == [try proof(1)])
        let rest = try await stores.pendingProofs.pendingProofs(after: try proof(1).deviceID, limit: 10)
        #expect(rest == [try proof(3)])
        await stores.close()
    }

    // SQLite treats a negative limit as no limit.
    @Test(arguments: [0, -1, .min]) func `a page of less than one row is empty`(_ limit: Int) async throws {
        let folder = try TemporaryFolder()
        let stores = try SQLiteStores.open(folder)
        try await stores.pendingProofs.keep(try proof(1))
        let summary = RecordingSummary(
            id: "id", appID: try AppID("com.example.app"), deviceID: nil, recordedAt: UnixTime(1),
            expiresAt: UnixTime(2), format: "f", code: "c", step: "s")
        try await stores.recordings.keep(RecordedRefusal(summary: summary, sealed: [1]), within: .standard)
        #expect(try await stores.pendingProofs.pendingProofs(after: nil, limit: limit) == [])
        #expect(try await stores.serviceKeys.sealedRows(.pendingProof, after: "", limit: limit) == [])
        #expect(try await stores.recordings.recordings(of: nil, before: nil, limit: limit) == [])
        #expect(try await stores.recordings.eraseRecordings(expiredAt: UnixTime(2), limit: limit) == 0)
        await stores.close()
    }
}
