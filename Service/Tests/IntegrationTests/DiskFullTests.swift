import AuthContract
import Crypto
import Foundation
import StrictJSON
import Testing

/// The disk fills up while the service serves.
@Suite struct DiskFull {
    @Test(.enabled(if: TinyDisk.canBeMounted, "a file system of a few megabytes needs the right to mount one"))
    func `a full disk is 503 until there is space, and no request is accepted twice`() async throws {
        let disk = try #require(TinyDisk(kilobytes: 65_536))
        let fixture = try await ServiceFixture(database: disk.path("db.sqlite"))
        let service = try await fixture.start()
        let device = try #require(await DevelopmentDevice.register(P256.Signing.PrivateKey(), port: service.port))
        var accepted: [WireRequest] = []
        let probe = WireRequest(method: "GET", target: "/readyz")
        #expect(await WireConnection.exchange(port: service.operationsPort, probe)?.status == 200)

        try disk.fill()
        // The journal has preallocated space for claims, so some requests may still be accepted. The revocation fails, because the
        // database needs new space at once.
        for _ in 0..<200 {
            let request = try device.request(.status)
            let answer = try #require(await WireConnection.exchange(port: service.port, request))
            #expect(answer.status == 200 || answer.code == "SERVICE_UNAVAILABLE", "\(answer.text)")
            if answer.status == 200 { accepted.append(request) }
        }
        let revocation = fixture.administer(
            "POST", "/apps/\(DevelopmentDevice.appID)/devices/\(device.id)/revoke")
        let refused = try #require(await WireConnection.exchange(port: service.operationsPort, revocation))
        #expect(refused.status == 503 && refused.code == "SERVICE_UNAVAILABLE", "\(refused.text)")
        #expect(refused.value("Retry-After").flatMap { Int($0) }.map { (1...300).contains($0) } == true)
        var ready = await WireConnection.exchange(port: service.operationsPort, probe)
        // A readiness result is cached for a second: the service may still answer with the one from before the disk was full.
        let cacheEnd = ContinuousClock.now + .seconds(20)
        while ready?.status == 200, ContinuousClock.now < cacheEnd {
            ready = await WireConnection.exchange(port: service.operationsPort, probe)
        }
        #expect(ready?.status == 503, "\(ready?.text ?? "")")
        #expect(ready?.json["failures"]?.object?["storage"] != nil, "\(ready?.text ?? "")")
        #expect(await DevelopmentDevice.register(P256.Signing.PrivateKey(), port: service.port) == nil)

        try disk.makeRoom()
        var recovered: WireResponse?
        let deadline = ContinuousClock.now + .seconds(20)
        while recovered?.status != 200, ContinuousClock.now < deadline {
            let request = try device.request(.status)
            recovered = await WireConnection.exchange(port: service.port, request)
            if recovered?.status == 200 { accepted.append(request) }
        }
        #expect(recovered?.status == 200, "\(recovered?.text ?? "no answer")")
        var again = await WireConnection.exchange(port: service.operationsPort, probe)
        // A readiness result is cached for a second.
        while again?.status != 200, ContinuousClock.now < deadline {
            again = await WireConnection.exchange(port: service.operationsPort, probe)
        }
        #expect(again?.status == 200, "\(again?.text ?? "no answer")")
        #expect(await DevelopmentDevice.register(P256.Signing.PrivateKey(), port: service.port) != nil)
        try await expectReplaysRefused(accepted, service)

        service.kill()
        let restarted = try await fixture.start(port: service.port)
        try await expectReplaysRefused(accepted, restarted)
        #expect(restarted.stop() == 0)
        print("\(accepted.count) requests accepted beside a full disk, every replay of them refused")
    }

    private func expectReplaysRefused(_ accepted: [WireRequest], _ service: RunningService) async throws {
        for request in accepted {
            let answer = try #require(await WireConnection.exchange(port: service.port, request.underNewNonce()))
            #expect(answer.code == "NONCE_REPLAY", "\(answer.text)")
        }
    }
}
