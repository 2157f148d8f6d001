import AuthContract
import AuthService
import Bytes
import Foundation
import RESP
import ServiceTestHelpers
import Testing

@testable import RedisStores

@Suite("Replays under load", .enabled(if: RedisInstallation.isHere))
struct ReplayUnderLoadTests {
    enum Fault: CaseIterable, Sendable {
        case none, flush, restart, pause, brieflyAReplica
    }

    @Test(arguments: Fault.allCases)
    func `no request is accepted twice, on whichever node its copies arrive`(_ fault: Fault) async throws {
        let server = try await RedisServer.start()
        let nodes = [
            try await RedisStores.forTest(server.url) { $0.deadline = .milliseconds(500) },
            try await RedisStores.forTest(server.url) { $0.deadline = .milliseconds(500) },
        ]
        let (accepted, refused) = (Locked<[DeviceID: Int]>([:]), Locked(0))
        let sent = Locked<[SampleRequest]>([])
        let isOver = Locked(false)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<8 {
                group.addTask {
                    while !isOver.withLock({ $0 }) {
                        // A new request, or a copy of an old one.
                        let old = Bool.random() ? sent.withLock { $0.randomElement() } : nil
                        let request = old ?? SampleRequest()
                        if old == nil { sent.withLock { $0.append(request) } }
                        switch try? await nodes[number % 2].claim(request) {
                        case .claimed: accepted.withLock { $0[request.device, default: 0] += 1 }
                        case .taken, .historyLost: refused.withLock { $0 += 1 }
                        default: try await Task.sleep(for: .milliseconds(1))
                        }
                    }
                }
            }
            try await eventually("requests are accepted") { accepted.withLock { $0.count > 200 } }
            switch fault {
            case .none: break
            case .flush: try await server.command("FLUSHALL")
            case .restart:
                server.kill()
                try await server.launch()
            case .pause:
                server.signal(SIGSTOP)
                await #expect(throws: (any Error).self) { try await nodes[0].replay.claim(SampleRequest()) }
                server.signal(SIGCONT)
            case .brieflyAReplica:
                try await server.command("REPLICAOF", "127.0.0.1", "\(try LoopbackPort.reserve())")
                try await server.command("REPLICAOF", "NO", "ONE")
            }
            let before = refused.withLock { $0 }
            try await eventually("the nodes judge again") { refused.withLock { $0 > before + 200 } }
            isOver.withLock { $0 = true }
            try await group.waitForAll()
        }
        #expect(accepted.withLock { $0.values.allSatisfy { $0 == 1 } })
        for node in nodes { await node.close() }
    }
}

extension ReplayStore {
    fileprivate func claim(_ request: SampleRequest) async throws(StoreError) -> ClaimOutcome {
        try await claim(
            request.claims, of: request.device, timestamp: request.timestamp, expiresAt: request.timestamp + 660,
            now: SystemClock().now, futureWindow: 60)
    }
}
