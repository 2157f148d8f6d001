import AuthContract
import AuthServer
import AuthService
import Bytes
import Console
import Crypto
import StoreConformance
import StrictJSON
import Testing

/// A clock that the test sets.
final class TestClock: ServiceClock {
    private let time = Locked(UnixTime(1_800_000_000))

    var now: UnixTime { time.withLock { $0 } }

    func advance(_ seconds: Int64) { time.withLock { $0 = $0 + seconds } }
}

/// A console over stores in memory, without a listener.
struct Desk {
    static let app = "com.example.app"
    static let host = "localhost:9464"

    let clock = TestClock()
    let stores: MemoryStores
    let service: AuthService
    let pages: PageService
    let console: Console

    init(readiness: Readiness = Readiness([.init("replay") {}])) async throws {
        let memory = MemoryStores(clock: clock)
        let all = AuthService.Stores(
            challenges: memory, replay: memory, apps: memory, devices: memory, audit: memory, credentials: memory,
            signingKeys: memory, recordings: memory, history: memory, webhooks: memory,
            auditArchives: memory)
        let key = try #require(ServiceKey([UInt8](repeating: 7, count: 32)))
        stores = memory
        service = AuthService(stores: all, key: key, clock: clock)
        pages = PageService(service: service, stores: all, readiness: readiness)
        console = try Console()
        try await addApp(Self.app)
    }

    func addApp(_ id: String) async throws {
        let record: JSONObject = JSONObject([
            ("app_id", .string(id)), ("build_channel", "dev"), ("development_integrity_allowed", true),
            ("ios", ["app_ids": ["TEAMID1234.com.example.app"]] as JSONValue),
        ])
        try #require(try await service.apps.add(AppRecord(JSONFields(.object(record))), actor: "test"))
    }

    /// Creates a credential, and returns its id and its text.
    func credential(
        _ role: CredentialRole, apps: [String] = [], name: String = "test", life: Int64 = 90 * 86_400
    ) async throws -> (id: String, text: String) {
        let (credential, text) = try await service.credentials.create(
            name: name, role: role, scope: apps.isEmpty ? .allApps : .apps(Set(try apps.map { try AppID($0) })),
            life: life, actor: "test")
        return (credential.id, text.exposed)
    }

    /// Adds a device, and returns its id.
    func addDevice(
        _ status: DeviceStatus = .registered, of app: String = Desk.app, label: String = "MEETS_DEVICE_INTEGRITY",
        localID: String? = nil, scheme: SignatureScheme = .one
    ) async throws -> String {
        let id = DeviceID(from: SystemRandom())
        let appID = try AppID(app)
        let device = DeviceRecord(
            appID: appID, deviceID: id, platform: .ios, status: status,
            key: DevicePublicKey(P256.Signing.PrivateKey().publicKey),
            assurance: Assurance(app: .appAttest, key: .appVouched, labels: [label]), registeredAt: clock.now,
            highestScheme: scheme, localID: localID)
        let event = AuditEvent(
            .deviceRegistered, at: clock.now, actor: "device", appID: appID, deviceID: id,
            detail: JSONObject([("label", .string(label))]))
        let stored = try #require(try await stores.app(appID))
        let outcome = try await stores.insert(device, under: stored, maximumPending: 100, recording: event)
        try #require(outcome == .inserted)
        return id.text
    }

    /// A browser whose person is signed in.
    func signedIn(_ role: CredentialRole, apps: [String] = [], name: String = "test") async throws -> Browser {
        let browser = Browser(self)
        try await browser.signIn(try await credential(role, apps: apps, name: name).text)
        return browser
    }

    func codes() async throws -> [String] {
        try await stores.events(app: nil, device: nil, before: nil, limit: 100).map(\.event.codeText)
    }
}

/// A browser at the console. It keeps the cookie of the session.
final class Browser {
    let desk: Desk
    var cookie: String?
    var host = Desk.host

    init(_ desk: Desk) { self.desk = desk }

    func get(_ path: String, refresh: Bool = false) async -> PageAnswer {
        var request = self.request("GET", path)
        request.isRefresh = refresh
        return await send(request)
    }

    /// Sends a form as a page of the same origin does.
    ///
    /// - Parameter check: whether the page's script sends the form only to have it checked.
    func post(
        _ path: String, _ fields: [(String, String)], origin: String? = "http://\(Desk.host)", check: Bool = false
    ) async -> PageAnswer {
        var request = self.request("POST", path)
        request.isCheck = check
        request.form = PageFields(fields)
        request.origin = origin
        return await send(request)
    }

    /// Sends a form with the token of its page and, if the page has one, the version of the thing to change.
    func submit(_ path: String, _ fields: [(String, String)] = []) async throws -> PageAnswer {
        let token = try await token(at: path)
        let version = await version(at: path)
        return await post(path, fields + [("token", token)] + (version.map { [("tag", $0)] } ?? []))
    }

    /// The version in the form of a page that makes a change; nil if the page has none.
    func version(at path: String) async -> String? {
        let form = await get(path).text.components(after: "class=\"change\"").map { String($0) }
        let value = form?.components(after: "name=\"tag\" value=\"").map { String($0.prefix { $0 != "\"" }) }
        return value?.replacing("&quot;", with: "\"")
    }

    /// The token in the forms of a page.
    func token(at path: String) async throws -> String {
        let page = await get(path).text
        let parts = page.components(after: "name=\"token\" value=\"")
        return try #require(parts).prefix { $0 != "\"" }.description
    }

    func signIn(_ credential: String) async throws {
        let answer = await post("/console/sign-in", [("credential", credential)])
        try #require(answer.status == 303, "\(answer.text)")
    }

    func request(_ method: String, _ target: String) -> PageRequest {
        let parts = target.split(separator: "?", maxSplits: 1)
        var request = PageRequest(method, String(parts[0]), host: host, from: ClientAddress("127.0.0.1"))
        if parts.count == 2 { request.query = (try? PageFields(parsing: String(parts[1]))) ?? PageFields() }
        if let cookie { request.cookies["__Host-synheart-console"] = [cookie] }
        return request
    }

    private func send(_ request: PageRequest) async -> PageAnswer {
        let answer = await desk.console.answer(request, with: desk.pages)
        if let set = answer.header("Set-Cookie") {
            let value = set.split(separator: ";")[0].split(separator: "=", omittingEmptySubsequences: false)[1]
            cookie = value.isEmpty ? nil : String(value)
        }
        return answer
    }
}

extension PageAnswer {
    var text: String { String(decoding: body ?? [], as: UTF8.self) }

    func header(_ name: String) -> String? { headers.first { $0.0 == name }?.1 }

    var location: String? { header("Location") }
}

extension String {
    /// The text after the first occurrence of a marker.
    func components(after marker: String) -> Substring? {
        firstRange(of: marker).map { self[$0.upperBound...] }
    }
}
