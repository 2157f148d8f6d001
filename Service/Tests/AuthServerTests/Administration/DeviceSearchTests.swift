import AuthContract
import AuthService
import StrictJSON
import Testing

@testable import AuthServer
@testable import StoreConformance

extension MemoryStores {
    fileprivate func makePending(_ id: DeviceID) { deviceRecords[id]?.status = .pending }
}

/// Searches for a device by its id, or by the hash that logs show, in the apps of the credential.
@Suite struct DeviceSearchTests {
    private static let other = "com.example.other"

    /// The queries that name a device.
    private static func queries(_ id: String) throws -> [String] {
        ["device_id=\(id)", "device_hash=\(try DeviceID(id).logged)"]
    }

    @Test func `an id or a hash finds the device in all apps of the credential`() async throws {
        try await TestServer.with { server in
            try await server.addApp(Self.other)
            let device = try await TestDevice.register(at: server)
            _ = try await TestDevice.register(at: server)
            let credentials = [
                try await server.credential(.viewer), try await server.credential(.viewer, apps: [TestServer.appID]),
                try await server.credential(.viewer, apps: [TestServer.appID, Self.other]),
            ]
            for credential in credentials {
                for query in try Self.queries(device.id) {
                    for named in ["", "&app_id=\(TestServer.appID)", "&status=registered", "&limit=2"] {
                        let response = try await server.administer("GET", "/devices?\(query)\(named)", credential)
                        let found = response.json["devices"]?.array?.compactMap { $0.object?["device_id"]?.string }
                        #expect(found == [device.id], "\(query)\(named) \(response.text)")
                    }
                    let pending = try await server.administer("GET", "/devices?\(query)&status=pending", credential)
                    #expect(pending.json["devices"]?.array?.isEmpty == true, "\(pending.text)")
                }
            }
        }
    }

    @Test func `a device of another app is answered as one that does not exist`() async throws {
        try await TestServer.with { server in
            try await server.addApp(Self.other)
            let device = try await TestDevice.register(at: server)
            let bound = try await server.credential(.viewer, apps: [Self.other])
            let nobody = DeviceID(from: SystemRandom()).text
            // If the search applied the limit of 1 before it removed other apps' devices, the answer would name a next page.
            for rest in ["", "&limit=1", "&app_id=\(Self.other)", "&app_id=\(TestServer.appID)"] {
                for (query, unknown) in zip(try Self.queries(device.id), try Self.queries(nobody)) {
                    let foreign = try await server.administer("GET", "/devices?\(query)\(rest)", bound)
                    let missing = try await server.administer("GET", "/devices?\(unknown)\(rest)", bound)
                    #expect(foreign.status == (rest.contains(TestServer.appID) ? 403 : 200), "\(foreign.text)")
                    #expect(foreign.status == missing.status, "\(query)\(rest)")
                    guard foreign.status == 200 else { continue }
                    #expect(foreign.text == missing.text, "\(query)\(rest)")
                    #expect(foreign.json["devices"]?.array?.isEmpty == true, "\(foreign.text)")
                    #expect(foreign.json["next_cursor"]?.isNull == true, "\(foreign.text)")
                }
            }
            #expect(try await server.administer("GET", "/devices?status=registered", bound).status == 403)
        }
    }

    @Test func `the pending devices of all apps of a credential are one list, and other lists need an app`()
        async throws
    {
        try await TestServer.with { server in
            try await server.addApp(Self.other)
            var ids: [String] = []
            for _ in 0..<3 {
                ids.append(try await TestDevice.register(at: server).id)
                server.clock.advance(60)
            }
            for id in ids.prefix(2) { await server.stores.makePending(try DeviceID(id)) }
            func found(_ rest: String, _ credential: String) async throws -> [String?]? {
                let response = try await server.administer("GET", "/devices?status=pending\(rest)", credential)
                return response.json["devices"]?.array?.map { $0.object?["device_id"]?.string }
            }
            let own = try await server.credential(.viewer, apps: [TestServer.appID, Self.other])
            #expect(try await found("", own) == [ids[1], ids[0]])
            #expect(try await found("&order=oldest&limit=1", own) == [ids[0]])
            let foreign = try await server.credential(.viewer, apps: [Self.other])
            #expect(try await found("", foreign) == [])
            for query in ["", "?order=oldest", "?status=registered", "?status=revoked&order=oldest", "?platform=ios"] {
                #expect(try await server.administer("GET", "/devices\(query)", own).status == 403, "\(query)")
            }
        }
    }
}
