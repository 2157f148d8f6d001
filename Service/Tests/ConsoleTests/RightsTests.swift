import AuthContract
import AuthService
import StrictJSON
import Testing

@testable import AuthServer
@testable import Console

/// A page offers exactly the actions that the admin API allows.
@Suite struct RightsTests {
    private static let other = "com.example.other"

    @Test(arguments: AdminRoute.allCases)
    func `the table of rights agrees with the API on every route`(route: AdminRoute) async throws {
        for role in [CredentialRole.viewer, .operator, .admin] {
            for apps in [[], [Desk.app]] {
                let desk = try await Desk()
                let id = try await desk.credential(role, apps: apps).id
                let credential = try #require(try await desk.pages.credential(id))
                let device = DeviceID(from: SystemRandom()).text
                let call = AdminCall(
                    route,
                    [
                        "app_id": Desk.app, "device_id": device, "credential_id": "0", "kid": "0", "webhook_id": "0",
                        "recording_id": "0",
                    ], query: route.queryNames.contains("app_id") ? [("app_id", Desk.app)] : [])
                let answer = await desk.pages.answer(call, by: credential)
                #expect((answer.status == 403) == !credential.mayUse(route, of: nil), "\(role) \(apps)")
            }
        }
    }

    @Test(arguments: [CredentialRole.viewer, .operator, .admin])
    func `a device has a button for each decision that the role may make, and for no other`(
        role: CredentialRole
    ) async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(role)
        for status in [DeviceStatus.pending, .registered] {
            let device = try await desk.addDevice(status, scheme: .two)
            let page = await browser.get("/console/devices/\(Desk.app)/\(device)").text
            for change in DeviceChange.allCases {
                let path = "/console/devices/\(Desk.app)/\(device)/\(change.rawValue)"
                let isShown = page.contains("href=\"\(path)\"")
                let applies =
                    switch change {
                    case .approve, .reject: status == .pending
                    case .revoke: true
                    case .forceRotation, .lowerScheme: status == .registered
                    case .liftRotation: false
                    }
                #expect(isShown == (applies && role != .viewer), "\(change) of a \(status) device")
                #expect(await browser.get(path).status == (role == .viewer ? 403 : 200))
                if role == .viewer {
                    let token = try await browser.token(at: "/console/account")
                    #expect(await browser.post(path, [("token", token)]).status == 403)
                }
            }
        }
    }

    @Test func `a credential for one app sees that app alone`() async throws {
        let desk = try await Desk()
        try await desk.addApp(Self.other)
        let (mine, foreign) = (try await desk.addDevice(), try await desk.addDevice(of: Self.other))
        let browser = try await desk.signedIn(.admin, apps: [Desk.app])
        let list = await browser.get("/console/devices")
        #expect(list.status == 200 && list.text.contains(mine))
        for path in ["/console", "/console/devices", "/console/audit", "/console/devices?device=\(foreign)"] {
            let page = await browser.get(path)
            #expect(page.status == 200)
            #expect(!page.text.contains(Self.other), "\(path)")
        }
        #expect(await browser.get("/console/devices/\(Self.other)/\(foreign)").status == 403)
        #expect(await browser.get("/console/devices/\(Self.other)/\(foreign)/revoke").status == 403)
        #expect(await browser.get("/console/audit/verification").status == 403)
        #expect(await browser.get("/console/devices?app=\(Self.other)").text.contains(foreign) == false)
        #expect(await browser.get("/console/audit").text.contains("verification") == false)
    }

    @Test func `every link of the navigation leads to a page`() async throws {
        let desk = try await Desk()
        for role in [CredentialRole.viewer, .operator, .admin] {
            let browser = try await desk.signedIn(role)
            let first = await browser.get("/console").text
            for link in PageTable.navigation {
                let isShown = first.contains("href=\"/console\(link.path)\"")
                let status = await browser.get("/console" + link.path).status
                #expect(status == (isShown ? 200 : 403), "\(link.title) \(role)")
            }
        }
    }
}
